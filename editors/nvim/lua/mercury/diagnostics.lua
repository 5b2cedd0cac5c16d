-- What other language servers report goes to ours: next-edit models are told of it.
local M = {}

local MOST, PAUSE_MS = 50, 100
local waiting = {} ---@type table<integer, true> buffers whose diagnostics are about to be told

local function position(client, buf, row, column)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
  local encoding = client.offset_encoding
  return { line = row, character = vim.str_utfindex(line, encoding, math.min(column, #line), false) }
end

local function told(client, buf, diagnostic)
  local stop_row, stop_column = diagnostic.end_lnum or diagnostic.lnum, diagnostic.end_col or diagnostic.col
  return {
    range = {
      start = position(client, buf, diagnostic.lnum, diagnostic.col),
      ["end"] = position(client, buf, stop_row, stop_column),
    },
    severity = diagnostic.severity,
    message = diagnostic.message,
    tags = vim.tbl_get(diagnostic, "user_data", "lsp", "tags"),
  }
end

local function tell(buf)
  local client = vim.api.nvim_buf_is_loaded(buf) and require("mercury.client").editor(buf)
  if not client then
    return
  end
  local found = vim.list_slice(vim.diagnostic.get(buf), 1, MOST)
  client:notify("mercury/didChangeDiagnostics", {
    textDocument = { uri = vim.uri_from_bufnr(buf), version = vim.lsp.util.buf_versions[buf] },
    diagnostics = vim.tbl_map(function(diagnostic)
      return told(client, buf, diagnostic)
    end, found),
  })
end

-- Those of a buffer have changed.
function M.changed(buf)
  if waiting[buf] or not require("mercury.client").editor(buf) then
    return
  end
  waiting[buf] = true
  vim.defer_fn(function()
    waiting[buf] = nil
    tell(buf)
  end, PAUSE_MS)
end

return M
