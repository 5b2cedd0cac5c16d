//! What the extension does in worktrees that are made up.

#[cfg(test)]
#[path = "../../../../../editors/zed/src/lib.rs"]
mod extension;

#[cfg(test)]
mod tests {
    use super::extension::{by_uvx, registered};
    use zed_extension_api::serde_json::{json, Value};
    use zed_extension_api::settings::{CommandSettings, LspSettings};
    use zed_extension_api::{Command, LanguageServerId, Worktree};

    fn id() -> LanguageServerId {
        LanguageServerId("mercury".into())
    }

    fn pairs<T: FromIterator<(String, String)>>(given: &[(&str, &str)]) -> T {
        given
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    }

    fn worktree(programs: &[(&str, &str)], settings: LspSettings) -> Worktree {
        Worktree {
            settings: [("mercury".into(), settings)].into(),
            programs: pairs(programs),
            shell: pairs(&[("PATH", "/bin")]),
        }
    }

    fn command(worktree: &Worktree) -> Result<Command, String> {
        registered().language_server_command(&id(), worktree)
    }

    const ON_PATH: (&str, &str) = ("mercury-ls", "/bin/mercury-ls");

    #[test]
    fn the_server_on_the_path_is_started_over_stdio() {
        let found = command(&worktree(&[ON_PATH], LspSettings::default())).unwrap();
        assert_eq!(
            (found.command.as_str(), found.args),
            ("/bin/mercury-ls", vec!["--stdio".to_string()])
        );
        assert_eq!(found.env, pairs::<Vec<_>>(&[("PATH", "/bin")]));
    }

    #[test]
    fn what_the_settings_name_comes_first() {
        let binary = CommandSettings {
            path: Some("/mine".into()),
            arguments: Some(vec!["--stdio".into(), "--verbose".into()]),
            env: Some(pairs(&[("MERCURY_LOG_LEVEL", "debug")])),
        };
        let settings = LspSettings {
            binary: Some(binary),
            ..Default::default()
        };
        let found = command(&worktree(&[ON_PATH], settings)).unwrap();
        assert_eq!((found.command.as_str(), found.args.len()), ("/mine", 2));
        assert_eq!(
            found.env,
            pairs::<Vec<_>>(&[("PATH", "/bin"), ("MERCURY_LOG_LEVEL", "debug")])
        );
    }

    #[test]
    fn arguments_alone_go_to_the_server_on_the_path() {
        let binary = CommandSettings {
            arguments: Some(vec!["--log-level=debug".into()]),
            ..Default::default()
        };
        let settings = LspSettings {
            binary: Some(binary),
            ..Default::default()
        };
        let found = command(&worktree(&[ON_PATH], settings)).unwrap();
        assert_eq!(
            (found.command.as_str(), found.args),
            ("/bin/mercury-ls", vec!["--log-level=debug".to_string()])
        );
    }

    #[test]
    fn without_a_server_the_error_says_what_to_do() {
        let told = command(&worktree(&[], LspSettings::default())).unwrap_err();
        assert!(
            told.contains("uv tool install") && told.contains("\"binary\""),
            "{told}"
        );
    }

    #[test]
    fn where_the_package_has_a_name_uvx_runs_it() {
        let uvx = worktree(&[("uvx", "/bin/uvx")], LspSettings::default());
        let (program, arguments) = by_uvx(&uvx, "theirs==1.0.0").unwrap();
        assert_eq!(program, "/bin/uvx");
        assert_eq!(arguments, ["--from", "theirs==1.0.0", "mercury-ls"]);
        assert_eq!(by_uvx(&uvx, ""), None);
        assert_eq!(
            by_uvx(&worktree(&[], LspSettings::default()), "theirs==1.0.0"),
            None
        );
    }

    fn version() -> Value {
        Value::String(env!("CARGO_PKG_VERSION").into())
    }

    #[test]
    fn options_and_settings_reach_the_server_where_it_looks_for_them() {
        let given = |text: &str| Some(Value::String(text.into()));
        let settings = LspSettings {
            initialization_options: Some(json!({ "suggest": Value::String("o".into()) })),
            settings: given("s"),
            ..Default::default()
        };
        let worktree = worktree(&[ON_PATH], settings);
        let mut extension = registered();
        let Value::Object(options) = extension
            .language_server_initialization_options(&id(), &worktree)
            .unwrap()
            .unwrap()
        else {
            panic!("no table");
        };
        assert_eq!(options.get("suggest"), given("o").as_ref());
        assert_eq!(options.get("pluginVersion"), Some(&version()));
        let section = json!({ "mercury": Value::String("s".into()) });
        assert_eq!(
            extension
                .language_server_workspace_configuration(&id(), &worktree)
                .unwrap(),
            Some(section)
        );
    }

    #[test]
    fn without_settings_only_the_version_is_handed_on() {
        let worktree = worktree(&[ON_PATH], LspSettings::default());
        let mut extension = registered();
        assert_eq!(
            extension
                .language_server_initialization_options(&id(), &worktree)
                .unwrap(),
            Some(json!({ "pluginVersion": version() }))
        );
        assert_eq!(
            extension
                .language_server_workspace_configuration(&id(), &worktree)
                .unwrap(),
            None
        );
    }
}
