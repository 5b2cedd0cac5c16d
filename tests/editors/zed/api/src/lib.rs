//! As much of Zed's extension API as ours uses, by its signatures, with a worktree that a test can make up.

pub mod serde_json;
pub mod settings;

use std::collections::HashMap;

pub type Result<T, E = String> = core::result::Result<T, E>;
pub type EnvVars = Vec<(String, String)>;

#[derive(Debug)]
pub struct LanguageServerId(pub String);

impl AsRef<str> for LanguageServerId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, PartialEq)]
pub struct Command {
    pub command: String,
    pub args: Vec<String>,
    pub env: EnvVars,
}

/// `settings` are by the names of language servers, `programs` by their names on the PATH.
#[derive(Default)]
pub struct Worktree {
    pub settings: HashMap<String, settings::LspSettings>,
    pub programs: HashMap<String, String>,
    pub shell: EnvVars,
}

impl Worktree {
    pub fn which(&self, name: &str) -> Option<String> {
        self.programs.get(name).cloned()
    }

    pub fn shell_env(&self) -> EnvVars {
        self.shell.clone()
    }
}

pub trait Extension: Send + Sync {
    fn new() -> Self
    where
        Self: Sized;

    fn language_server_command(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Command>;

    fn language_server_initialization_options(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<serde_json::Value>>;

    fn language_server_workspace_configuration(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<serde_json::Value>>;
}

/// What the host does with an extension: makes one, by a function of a known name.
#[macro_export]
macro_rules! register_extension {
    ($extension:ty) => {
        pub fn registered() -> Box<dyn $crate::Extension> {
            Box::new(<$extension as $crate::Extension>::new())
        }
    };
}
