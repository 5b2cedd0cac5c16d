-- One suggestion for one place of a line: what is left of it after more was typed, and how that is taken.
local M = {}

local closers = "^[%)%]}>\"'`]*$"

---@class mercury.Suggestion
---@field client_id integer
---@field buf integer
---@field row integer
---@field start integer first byte of `base` that is replaced
---@field stop integer first byte behind them
---@field text string with line feeds at line ends, as buffers have them
---@field line_end string what the server ends lines with
---@field base string the line that `start` and `stop` are columns of
---@field command? lsp.Command

---@class mercury.Rest what taking the suggestion now would do: `between`, behind the cursor, becomes `text`
---@field row integer
---@field col integer
---@field text string
---@field between string

-- Where the cursor is and what its line says, for an answer to refer to.
function M.place(buf)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  return { row = row - 1, col = col, line = M.line(buf, row - 1) }
end

function M.line(buf, row)
  return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
end

-- An answer's item as a suggestion; nil for what cannot be one. `asked` is the place that was asked about: where
-- the server has seen more of the line by now, its columns are of the line as it is.
function M.new(client, buf, item, asked)
  local range = item.range
  if type(item.insertText) ~= "string" or (range and range.start.line ~= range["end"].line) then
    return nil
  end
  local row = range and range.start.line or asked.row
  local function built(line)
    local function byte(position)
      return vim.str_byteindex(line, client.offset_encoding, position.character, false)
    end
    return {
      client_id = client.id,
      buf = buf,
      row = row,
      start = range and byte(range.start) or asked.col,
      stop = range and byte(range["end"]) or asked.col,
      text = (item.insertText:gsub("\r\n?", "\n")),
      line_end = item.insertText:match("\r\n?") or "\n",
      base = line,
      command = item.command,
    }
  end
  local made = row == asked.row and built(asked.line)
  if made and made.start <= asked.col then
    return made
  end
  return built(M.line(buf, row))
end

-- Whether what stands behind the cursor is what stood there, or brackets closed by the editor that the rest has too.
local function replaceable(between, region, rest)
  if not vim.endswith(between, region) then
    return false
  end
  local closed = between:sub(1, #between - #region)
  if not closed:match(closers) then
    return false
  end
  for character in closed:gmatch(".") do
    if not rest:find(character, 1, true) then
      return false
    end
  end
  return true
end

-- The beginning of the suggestion that stands before the cursor, and what of it is still to come.
local function split(s, row, col, line)
  if row == s.row and col < s.start then
    return line:sub(1, col) == s.base:sub(1, col) and "", s.base:sub(col + 1, s.start) .. s.text
  end
  local first = row == s.row and line or M.line(s.buf, s.row)
  if first:sub(1, s.start) ~= s.base:sub(1, s.start) then
    return nil
  end
  local typed = table.concat(vim.api.nvim_buf_get_text(s.buf, s.row, s.start, row, col, {}), "\n")
  return vim.startswith(s.text, typed) and typed or nil, s.text:sub(#typed + 1)
end

-- What is left of the suggestion at the cursor; nil where the text has gone elsewhere or all is typed.
---@return mercury.Rest?
function M.rest(s)
  if s.buf ~= vim.api.nvim_get_current_buf() then
    return nil
  end
  local here = M.place(s.buf)
  local tail = s.base:sub(s.stop + 1)
  local limit = #here.line - #tail
  if here.row < s.row or here.col > limit or not vim.endswith(here.line, tail) then
    return nil
  end
  local typed, text = split(s, here.row, here.col, here.line)
  local between = here.line:sub(here.col + 1, limit)
  if not typed or text == between or not replaceable(between, s.base:sub(s.start + 1, s.stop), text) then
    return nil
  end
  return { row = here.row, col = here.col, text = text, between = between }
end

-- The part of a rest that the next word, or the next line, ends.
function M.word(text)
  return text:match("^%s*[%w_\128-\255]+") or text:match("^%s*[^%w%s_]+") or text
end

function M.first_line(text)
  return text:match("^\n?[^\n]*")
end

-- Where `text` goes around the characters of `between`, as (offset, piece) pairs; nil where these have to go.
function M.pieces(text, between)
  local first, more = text:match("^([^\n]*)(.*)$")
  local found, from = {}, 1
  for index = 1, #between do
    local at = first:find(between:sub(index, index), from, true)
    if not at then
      return nil
    end
    table.insert(found, { index - 1, first:sub(from, at - 1) })
    from = at + 1
  end
  table.insert(found, { #between, first:sub(from) })
  return (between == "" or more == "") and vim.tbl_filter(function(piece)
    return piece[2] ~= ""
  end, found) or nil
end

-- Inserts `part`, all of the rest or its beginning, as an undo step of its own, and tells the server.
function M.take(s, rest, part)
  local whole = part == rest.text
  local stop = rest.col + (whole and #rest.between or 0)
  local lines = vim.split(part, "\n", { plain = true })
  vim.cmd("let &g:undolevels = &g:undolevels")
  vim.api.nvim_buf_set_text(s.buf, rest.row, rest.col, rest.row, stop, lines)
  local last = #lines[#lines] + (#lines == 1 and rest.col or 0)
  vim.api.nvim_win_set_cursor(0, { rest.row + #lines, last })
  vim.api.nvim_feedkeys(vim.keycode("<C-g>u"), "ni", false)
  M.report(s, whole, #s.text - #rest.text + #part)
end

function M.report(s, whole, length)
  local client = vim.lsp.get_client_by_id(s.client_id)
  if not client or not s.command then
    return
  elseif whole then
    client:exec_cmd(s.command, { bufnr = s.buf }, function() end)
  else
    local sent = s.text:sub(1, math.max(length, 0)):gsub("\n", s.line_end)
    local told = { item = { command = s.command }, acceptedLength = vim.str_utfindex(sent, "utf-16") }
    client:notify("textDocument/didPartiallyAcceptCompletion", told)
  end
end

local reported = nil ---@type string?

-- Once for each suggestion, however often it is asked for while it is typed; the first one ever is explained.
function M.report_shown(s)
  local client = vim.lsp.get_client_by_id(s.client_id)
  local id = vim.tbl_get(s, "command", "arguments", 1)
  if client and id and id ~= reported then
    reported = id
    client:notify("textDocument/didShowCompletion", { item = { command = s.command } })
  end
  require("mercury.welcome").explain()
end

function M.reject(s)
  local client = vim.lsp.get_client_by_id(s.client_id)
  local id = vim.tbl_get(s, "command", "arguments", 1)
  if client and type(id) == "string" then
    client:notify("mercury/didReject", { id = id })
  end
end

return M
