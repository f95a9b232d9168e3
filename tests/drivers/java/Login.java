import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoCommandException;
import com.mongodb.MongoSecurityException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoDatabase;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bson.Document;

/**
 * Logs in as each line of the input says, through MongoDB's driver for Java. A line is a URI. The
 * outcome is a line, too: "user NAME", or "error CODE".
 */
class Login {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (var uri = input.readLine(); uri != null; uri = input.readLine()) {
            System.out.println(outcome(uri));
        }
    }

    private static String outcome(String uri) throws Exception {
        var connection = new ConnectionString(uri);
        var settings = MongoClientSettings.builder()
                .applyConnectionString(connection)
                .applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(5, TimeUnit.SECONDS));
        if (Boolean.TRUE.equals(connection.getSslEnabled())) {
            var context = tls(uri);
            settings.applyToSslSettings(ssl -> ssl.context(context));
        }
        try (MongoClient client = MongoClients.create(settings.build())) {
            MongoDatabase database = client.getDatabase("test");
            database.runCommand(new Document("find", "c"));
            var status = database.runCommand(new Document("connectionStatus", 1)).get("authInfo", Document.class);
            return "user " + status.getList("authenticatedUsers", Document.class).get(0).getString("user");
        } catch (MongoSecurityException refused) {
            return refused.getCause() instanceof MongoCommandException command
                    ? "error " + command.getErrorCode()
                    : "error: " + refused;
        } catch (MongoCommandException refused) {
            return "error " + refused.getErrorCode();
        }
    }

    /** The driver reads no files of certificates: the program does it, from the URI's options. */
    private static SSLContext tls(String uri) throws Exception {
        var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        var own = option(uri, "tlsCertificateKeyFile");
        var store = emptyStore();
        if (own != null) {
            store.setKeyEntry("own", privateKey(own), new char[0], certificates(own).toArray(Certificate[]::new));
        }
        keys.init(store, new char[0]);
        var authorities = emptyStore();
        authorities.setCertificateEntry("ca", certificates(option(uri, "tlsCAFile")).get(0));
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(authorities);
        var context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    private static String option(String uri, String name) {
        for (var part : uri.substring(uri.indexOf('?') + 1).split("&")) {
            if (part.startsWith(name + "=")) {
                return part.substring(name.length() + 1);
            }
        }
        return null;
    }

    private static KeyStore emptyStore() throws Exception {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        return store;
    }

    private static List<? extends Certificate> certificates(String file) throws Exception {
        var pem = Files.readString(Path.of(file)).split("-----BEGIN PRIVATE KEY-----")[0];
        return List.copyOf(CertificateFactory.getInstance("X.509")
                .generateCertificates(new ByteArrayInputStream(pem.getBytes())));
    }

    private static PrivateKey privateKey(String file) throws Exception {
        var key = Files.readString(Path.of(file)).replaceAll("(?s).*BEGIN PRIVATE KEY-----|-----END PRIVATE KEY.*", "");
        return KeyFactory.getInstance("EC")
                .generatePrivate(new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(key)));
    }
}
