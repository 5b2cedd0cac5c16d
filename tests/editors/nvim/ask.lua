
local params = ...
local client = vim.lsp.get_clients({ bufnr = 0, name = "mercury" })[1]
local version = vim.lsp.util.buf_versions[vim.api.nvim_get_current_buf()]
params.textDocument = { uri = vim.uri_from_bufnr(0), version = version - params.behind }
_G.answer = nil
coroutine.wrap(function()
  local result, err = require("mercury.names").answer(nil, params, { client_id = client.id })
  _G.answer = { result = result, err = err }
end)()
