-- Which names the buffer's other language servers know at a place: our server asks, once for each place.
local client_of = require("mercury.client")

local M = {}

local COMPLETION = "textDocument/completion"
local INVOKED = 1
local TEXT = 1
local NO_NAMES = { [TEXT] = true, [14] = true, [15] = true } -- 14: keywords, 15: snippets
local MOST, LONGEST = 1024, 100

local function text(value)
  return type(value) == "string" and value or nil
end

local function list(value)
  return type(value) == "table" and value or {}
end

-- What an entry inserts; whoever does not say inserts the label.
local function inserted(item)
  return text(item.textEditText)
    or text(list(item.textEdit).newText)
    or text(item.insertText)
    or text(item.filterText)
    or text(item.label)
    or ""
end

-- Adds the names of a completion list, and whether there may be others. What needs an import first is the name of
-- something elsewhere.
local function add_names(found, result)
  found.isIncomplete = found.isIncomplete or result.isIncomplete == true
  for _, item in ipairs(list(result.items or result)) do
    local name = inserted(item):match("^[^\n]*")
    if item.kind == TEXT or #list(item.additionalTextEdits) > 0 or #found.items >= MOST then
      found.isIncomplete = true
    elseif not NO_NAMES[item.kind] and #name <= LONGEST then
      local kind = type(item.kind) == "number" and item.kind or nil
      table.insert(found.items, { name = name, kind = kind })
    end
  end
end

-- The buffer in which a client has this version of a document; none where the text has changed since.
local function buffer_of(client, document)
  for buf in pairs(client.attached_buffers) do
    if vim.uri_from_bufnr(buf) == document.uri and vim.lsp.util.buf_versions[buf] == document.version then
      return buf
    end
  end
end

-- The other clients that can answer.
local function others(buf)
  return vim.tbl_filter(function(client)
    return not vim.list_contains(client_of.names, client.name)
  end, vim.lsp.get_clients({ bufnr = buf, method = COMPLETION }))
end

-- Asks all at once. `finished` is called once, with what is known when all have answered or the time is up; with nil
-- where all that were asked have failed.
local function ask(buf, params_for, milliseconds, finished)
  local asked = others(buf)
  local found = { items = {}, isIncomplete = #asked == 0 }
  local waiting, left, is_known = {}, #asked, #asked == 0
  local timer = assert(vim.uv.new_timer())

  local function finish()
    if timer:is_closing() then
      return
    end
    timer:close()
    for client, id in pairs(waiting) do
      client:cancel_request(id)
    end
    finished(is_known and found or nil)
  end

  local function answered(client, is_good, result)
    waiting[client], left = nil, left - 1
    is_good = is_good and pcall(add_names, found, result)
    is_known, found.isIncomplete = is_known or is_good, found.isIncomplete or not is_good
    if left == 0 then
      finish()
    end
  end

  timer:start(milliseconds, 0, vim.schedule_wrap(function()
    found.isIncomplete = true
    finish()
  end))
  for _, client in ipairs(asked) do
    local has_answered = false
    local ok, id = client:request(COMPLETION, params_for(client), function(err, result)
      has_answered = true
      answered(client, not err and (result == nil or type(result) == "table"), result or {})
    end, buf)
    if not ok then
      answered(client, false)
    elseif not has_answered then -- a server inside the editor may answer at once
      waiting[client] = id
    end
  end
  if #asked == 0 then
    finish()
  end
end

-- The handler of `mercury/names`. Neovim runs it in a thread that may wait for others without the editor waiting.
function M.answer(_, params, context)
  local client = assert(vim.lsp.get_client_by_id(context.client_id))
  local buf = buffer_of(client, params.textDocument)
  if not buf then
    return vim.NIL
  end
  local row = params.position.line
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
  local column = vim.str_byteindex(line, client.offset_encoding, params.position.character, false)
  local function params_for(other)
    return {
      textDocument = vim.lsp.util.make_text_document_params(buf),
      position = { line = row, character = vim.str_utfindex(line, other.offset_encoding, column, false) },
      context = { triggerKind = INVOKED },
    }
  end

  local thread, is_over, found = coroutine.running(), false, nil
  ask(buf, params_for, params.timeoutMs, function(result)
    is_over, found = true, result
    if coroutine.status(thread) == "suspended" then
      assert(coroutine.resume(thread))
    end
  end)
  if not is_over then
    coroutine.yield()
  end
  if found then
    return found
  end
  return nil, vim.lsp.rpc_response_error(vim.lsp.protocol.ErrorCodes.RequestCancelled, "no server answered in time")
end

return M
