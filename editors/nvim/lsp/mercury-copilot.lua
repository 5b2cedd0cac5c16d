-- The same server under a name that plugins for Copilot look for, and in the dialect that they speak.
local editor = { name = "Neovim", version = tostring(vim.version()) }

return require("mercury.config").named("mercury-copilot", { editorInfo = editor, editorPluginInfo = editor })
