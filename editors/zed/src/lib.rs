//! Starts `mercury-ls --stdio` for Zed and hands it the settings under `lsp.mercury`.

use zed_extension_api::serde_json::{json, Value};
use zed_extension_api::settings::LspSettings;
use zed_extension_api::{self as zed, Command, LanguageServerId, Result, Worktree};

const SERVER: &str = "mercury-ls";
/// On PyPI, in this version; empty until the name there is ours.
const PACKAGE: &str = "";
const REMEDY: &str = "mercury-ls is not on the PATH of this project. Install it in a clone with \
                      `uv tool install . --with ./models/quicksilver`, or name it in Zed's settings: \
                      \"lsp\": { \"mercury\": { \"binary\": { \"path\": \"…\" } } }";

struct Mercury;

impl zed::Extension for Mercury {
    fn new() -> Self {
        Mercury
    }

    fn language_server_command(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Command> {
        let (mut path, mut args, mut env) = (None, None, worktree.shell_env());
        if let Some(binary) = LspSettings::for_worktree(id.as_ref(), worktree)?.binary {
            (path, args) = (binary.path, binary.arguments);
            env.extend(binary.env.into_iter().flatten());
        }
        let own = path
            .or_else(|| worktree.which(SERVER))
            .map(|program| (program, vec![]));
        let (command, mut before) = own.or_else(|| by_uvx(worktree, PACKAGE)).ok_or(REMEDY)?;
        before.extend(args.unwrap_or_else(|| vec!["--stdio".into()]));
        Ok(Command {
            command,
            args: before,
            env,
        })
    }

    /// With the version, by which the server tells whether the extension or itself is too old.
    fn language_server_initialization_options(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        let version = Value::String(env!("CARGO_PKG_VERSION").into());
        let own = LspSettings::for_worktree(id.as_ref(), worktree)?.initialization_options;
        Ok(Some(match own {
            Some(Value::Object(mut options)) => {
                options.insert("pluginVersion".into(), version);
                Value::Object(options)
            }
            Some(other) => other,
            None => json!({ "pluginVersion": version }),
        }))
    }

    /// The server asks for its section by name.
    fn language_server_workspace_configuration(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        let settings = LspSettings::for_worktree(id.as_ref(), worktree)?.settings;
        Ok(settings.map(|section| json!({ "mercury": section })))
    }
}

/// What runs a package without installing it, where uv is on the PATH.
pub fn by_uvx(worktree: &Worktree, package: &str) -> Option<(String, Vec<String>)> {
    let arguments = ["--from", package, SERVER].map(String::from).to_vec();
    (!package.is_empty())
        .then(|| worktree.which("uvx"))
        .flatten()
        .map(|uvx| (uvx, arguments))
}

zed::register_extension!(Mercury);
