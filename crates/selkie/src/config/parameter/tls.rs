//! The settings of TLS.

use super::Parameter;
use crate::config::setting::Setting;
use crate::config::value::{client_certificates, path, tls_mode, tls_version};

pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        section: "tls",
        name: "mode",
        flag: Some("--tls"),
        kind: "\"off\", \"allow\", \"prefer\" or \"require\"",
        default: "\"off\"",
        example: "\"require\"",
        about: "Whether clients use TLS: not at all, if they want to (`allow` and `prefer`), or always. The first bytes \
                of a connection decide, so all use the same port.",
        read: read!(tls.mode, tls_mode),
    },
    Parameter {
        section: "tls",
        name: "certificate",
        flag: Some("--tls-certificate"),
        kind: "path",
        default: "# none",
        example: "\"/etc/selkie/server.pem\"",
        about: "A file (PEM) with the server's certificate, followed by those of intermediate authorities. It may also contain \
                the key, as MongoDB's `certificateKeyFile`; then users other than the owner and the group must not be able to \
                read it.",
        read: read!(tls.certificate, path),
    },
    Parameter {
        section: "tls",
        name: "key",
        flag: Some("--tls-key"),
        kind: "path",
        default: "# the file of the certificate",
        example: "\"/etc/selkie/server.key\"",
        about: "A file (PEM) with the certificate's key, in the form of PKCS#8, PKCS#1 or SEC1, without a passphrase. Users \
                other than the owner and the group must not be able to read it.",
        read: read!(tls.key, path),
    },
    Parameter {
        section: "tls",
        name: "ca",
        flag: Some("--tls-ca"),
        kind: "path",
        default: "# none",
        example: "\"/etc/selkie/ca.pem\"",
        about: "A file (PEM) with the authorities that sign clients' certificates.",
        read: read!(tls.ca, path),
    },
    Parameter {
        section: "tls",
        name: "crl",
        flag: Some("--tls-crl"),
        kind: "path",
        default: "# none",
        example: "\"/etc/selkie/revoked.pem\"",
        about: "A file (PEM) with the lists of clients' certificates that the authorities of `ca` have revoked. Then each \
                authority needs a current list: without one, its certificates are refused, as by MongoDB.",
        read: read!(tls.crl, path),
    },
    Parameter {
        section: "tls",
        name: "min-version",
        flag: Some("--tls-min-version"),
        kind: "\"1.2\" or \"1.3\"",
        default: "\"1.2\"",
        example: "\"1.3\"",
        about: "The lowest version of TLS.",
        read: read!(tls.min_version, tls_version),
    },
    Parameter {
        section: "tls",
        name: "client-certificates",
        flag: Some("--tls-client-certificates"),
        kind: "\"none\", \"optional\" or \"required\"",
        default: "# \"required\" with `ca`, otherwise \"none\"",
        example: "\"optional\"",
        about: "Whether clients present certificates. One that is presented must be valid, and signed by an authority of `ca`.",
        read: read!(tls.client_certificates, client_certificates),
    },
];
