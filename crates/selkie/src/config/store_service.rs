//! The service whose servers store the documents: settings of `[store]`.

use super::object::{Object, known};
use super::servers::password;
use super::services::WrittenService;
use super::setting::{ConfigError, Setting};
use service::Account;
use std::path::PathBuf;

/// A service whose servers store the documents.
#[derive(Clone, Debug)]
pub struct StoreService {
    pub name: String,
    /// The account that stores them.
    pub account: Account,
}

/// The settings of a store in a service, as written.
#[derive(Clone, Debug, Default)]
pub struct WrittenStoreService {
    pub service: Option<Setting<String>>,
    pub user: Option<Setting<String>>,
    pub password: Option<Setting<String>>,
    pub password_file: Option<Setting<PathBuf>>,
}

impl WrittenStoreService {
    pub fn over(self, beneath: WrittenStoreService) -> WrittenStoreService {
        WrittenStoreService {
            service: self.service.or(beneath.service),
            user: self.user.or(beneath.user),
            password: self.password.or(beneath.password),
            password_file: self.password_file.or(beneath.password_file),
        }
    }

    /// Returns the service; `None`: another store is configured.
    pub fn resolve(&self, services: &[Object<WrittenService>]) -> Result<Option<StoreService>, ConfigError> {
        let Some(setting) = &self.service else {
            let path = self.password_file.as_ref().map(|it| ("password-file", it.refuse("")));
            let text = |name, it: &Option<Setting<String>>| it.as_ref().map(|it| (name, it.refuse("")));
            return match text("user", &self.user).or(text("password", &self.password)).or(path) {
                Some((name, error)) => {
                    let message = format!("{name} belongs to service, which is not set; a URL in mariadb has its own");
                    Err(ConfigError { message, ..error })
                }
                None => Ok(None),
            };
        };
        let name = &setting.value;
        known(setting, name, "service", services.iter().map(|service| service.name.as_str()))?;
        if services.iter().any(|service| service.name == *name && service.written.monitor.is_none()) {
            let message = format!(
                "the service {name} has no monitor, so its primary is unknown; set monitor in [service.{name}]"
            );
            return Err(setting.refuse(message));
        }
        let Some(user) = &self.user else {
            return Err(setting.refuse("service needs user, the account that stores the documents, and password-file"));
        };
        let password = password(&self.password, &self.password_file, "password")?;
        Ok(Some(StoreService { name: name.clone(), account: Account { user: user.value.clone(), password } }))
    }
}
