-- The language server, for `vim.lsp.enable("mercury")`. Every field can be changed with `vim.lsp.config()`.
return require("mercury.config").named("mercury", vim.empty_dict())
