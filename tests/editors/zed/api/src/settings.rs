//! Zed's settings of a language server.

use crate::{serde_json::Value, Result, Worktree};
use std::collections::HashMap;

#[derive(Clone, Debug, Default)]
pub struct LspSettings {
    pub binary: Option<CommandSettings>,
    pub initialization_options: Option<Value>,
    pub settings: Option<Value>,
}

impl LspSettings {
    pub fn for_worktree(name: &str, worktree: &Worktree) -> Result<Self> {
        Ok(worktree.settings.get(name).cloned().unwrap_or_default())
    }
}

#[derive(Clone, Debug, Default)]
pub struct CommandSettings {
    pub path: Option<String>,
    pub arguments: Option<Vec<String>>,
    pub env: Option<HashMap<String, String>>,
}
