-- The next edit: asked for in normal mode, shown as a diff in place, jumped to when out of sight, made on a key.
local asking = require("mercury.asking").new()
local client_of = require("mercury.client")
local options = require("mercury.options")
local quiet = require("mercury.quiet")

local M = {}

local METHOD, METHOD_NOT_FOUND = "mercury/nextEdit", -32601
local AUTOMATIC = 2
local NEAR = 2
local space = vim.api.nvim_create_namespace("mercury.nextedit")

---@class mercury.Hunk a part of the offer
---@field buf integer
---@field range [integer, integer, integer, integer] of bytes; the text ends where a line behind the last would begin
---@field text string
---@field display "ghost"|"diff"

---@class mercury.Offer
---@field client_id integer
---@field id string
---@field label string
---@field hunks mercury.Hunk[]
---@field command? lsp.Command
---@field ticks table<integer, integer> each buffer's changedtick that the ranges are of
---@field taken boolean whether a part of it was accepted already

local offer = nil ---@type mercury.Offer?
local deaf = {} ---@type table<integer, true> clients whose server knows no next edits

local function line_of(buf, row)
  return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
end

-- A position as (row, byte), the last of which is the beginning of the line behind the last one.
local function byte_position(buf, position, encoding)
  local line = line_of(buf, position.line)
  if not line then
    return vim.api.nvim_buf_line_count(buf), 0
  end
  return position.line, vim.str_byteindex(line, encoding, position.character, false)
end

-- Whether writing ends the last line, which has no end of its own.
local function ends_when_written(buf)
  local bo = vim.bo[buf]
  return not bo.endofline and bo.fixendofline and not bo.binary
end

-- The range of the buffer that the hunk replaces, and the lines that come there. The end of a buffer's last line is no
-- part of any range: where the hunk's text ends with one, it is there already; where a line is added or taken away
-- behind it, the line end before that one comes or goes.
local function placed(hunk)
  local row, col, end_row, end_col = unpack(hunk.range)
  local last = vim.api.nvim_buf_line_count(hunk.buf) - 1
  local width, text = #line_of(hunk.buf, last), hunk.text
  local at_end = end_row == last and end_col == width and ends_when_written(hunk.buf)
  if end_row <= last and not at_end then
    return hunk.range, vim.split(text, "\n", { plain = true })
  elseif row > last then
    row, col, text = last, width, "\n" .. text
  elseif text == "" and col == 0 and row > 0 and (row < end_row or col < end_col) then
    row, col = row - 1, #line_of(hunk.buf, row - 1)
  end
  return { row, col, last, width }, vim.split((text:gsub("\n$", "")), "\n", { plain = true })
end

-- The line on which a hunk is found.
local function row_of(hunk)
  return math.min(hunk.range[1], vim.api.nvim_buf_line_count(hunk.buf) - 1)
end

-- Display

local function highlighted(text, group)
  return { { text, group } }
end

-- A change inside one line: what goes is struck, what comes stands behind it.
local function draw_inline(hunk, range, text, group)
  if range[2] < range[4] then
    vim.api.nvim_buf_set_extmark(hunk.buf, space, range[1], range[2], {
      end_row = range[3],
      end_col = range[4],
      hl_group = "MercuryDelete",
      priority = 200,
    })
  end
  vim.api.nvim_buf_set_extmark(hunk.buf, space, range[3], range[4], {
    virt_text = highlighted(text, group),
    virt_text_pos = "inline",
  })
end

-- An insertion of lines at the end of a line: its first part stands there, the others below.
local function draw_below(hunk, range, lines, group)
  vim.api.nvim_buf_set_extmark(hunk.buf, space, range[3], range[4], {
    virt_text = lines[1] ~= "" and highlighted(lines[1], group) or nil,
    virt_text_pos = "inline",
    virt_lines = vim.tbl_map(function(line)
      return highlighted(line, group)
    end, vim.list_slice(lines, 2)),
  })
end

-- A change of whole lines, without one at either end that stays: the old ones are struck, the new ones stand below,
-- complete.
local function draw_lines(hunk, range, lines)
  local first, last = line_of(hunk.buf, range[1]), line_of(hunk.buf, range[3])
  lines[1] = first:sub(1, range[2]) .. lines[1]
  lines[#lines] = lines[#lines] .. last:sub(range[4] + 1)
  local start, stop = range[1], range[3]
  if range[4] == 0 and stop > range[1] and lines[#lines] == last then
    table.remove(lines)
    stop = stop - 1
  end
  if range[2] == #first and lines[1] == first then
    table.remove(lines, 1)
    start = start + 1
  end
  for row = start, stop do
    vim.api.nvim_buf_set_extmark(hunk.buf, space, row, 0, {
      end_col = #line_of(hunk.buf, row),
      hl_group = "MercuryDelete",
      priority = 200,
    })
  end
  vim.api.nvim_buf_set_extmark(hunk.buf, space, stop, 0, {
    virt_lines = vim.tbl_map(function(line)
      return highlighted(line, "MercuryAdd")
    end, lines),
  })
end

local function draw(hunk)
  local range, lines = placed(hunk)
  local group = hunk.display == "ghost" and "MercuryGhost" or "MercuryAdd"
  local inserts = range[1] == range[3] and range[2] == range[4]
  local at_end = range[4] == #line_of(hunk.buf, range[3])
  if #lines == 1 and range[1] == range[3] then
    draw_inline(hunk, range, lines[1], group)
  elseif inserts and at_end then
    draw_below(hunk, range, lines, group)
  else
    draw_lines(hunk, range, lines)
  end
end

local function in_sight(hunk)
  local line = row_of(hunk) + 1
  return hunk.buf == vim.api.nvim_get_current_buf() and line >= vim.fn.line("w0") and line <= vim.fn.line("w$")
end

local function is_near(hunk)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  return in_sight(hunk) and row >= hunk.range[1] - NEAR and row <= hunk.range[3] + NEAR
end

-- The hunk that is next: the nearest in this buffer, otherwise the first.
local function nearest()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local best, distance = offer.hunks[1], math.huge
  for _, hunk in ipairs(offer.hunks) do
    local away = math.abs(row_of(hunk) - row)
    if hunk.buf == vim.api.nvim_get_current_buf() and away < distance then
      best, distance = hunk, away
    end
  end
  return best
end

-- Where the edit cannot be seen, a note at the end of the cursor's line says where it is.
local function draw_hint(hunk)
  local buf, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  local line = row_of(hunk)
  local where = ("line %d"):format(line + 1)
  if hunk.buf ~= buf then
    where = ("%s:%d"):format(vim.fn.fnamemodify(vim.api.nvim_buf_get_name(hunk.buf), ":t"), line + 1)
  end
  local arrow = hunk.buf ~= buf and "→" or line > row and "↓" or "↑"
  vim.api.nvim_buf_set_extmark(buf, space, row, 0, {
    virt_text = highlighted(("  %s next edit: %s"):format(arrow, where), "MercuryHint"),
    virt_text_pos = "eol",
  })
end

local function clear_display()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    vim.api.nvim_buf_clear_namespace(buf, space, 0, -1)
  end
end

-- Whether every buffer is as it was when the ranges were computed.
local function is_current(made)
  for buf, tick in pairs(made.ticks) do
    if not vim.api.nvim_buf_is_loaded(buf) or vim.api.nvim_buf_get_changedtick(buf) ~= tick then
      return false
    end
  end
  return true
end

-- Ranges of a text that has changed since are not drawn: the cursor's move is heard of before the change is.
local function show()
  clear_display()
  if not offer or not is_current(offer) then
    return
  end
  vim.tbl_map(draw, offer.hunks)
  local hunk = nearest()
  if not in_sight(hunk) then
    draw_hint(hunk)
  end
end

-- Asking

function M.clear()
  asking.stop()
  clear_display()
  offer = nil
end

local function hunk_of(edit, client)
  local buf = vim.uri_to_bufnr(edit.textDocument.uri)
  local version = edit.textDocument.version
  if not vim.api.nvim_buf_is_loaded(buf) or version ~= vim.lsp.util.buf_versions[buf] or quiet.unfit(buf) then
    return nil
  end
  local row, col = byte_position(buf, edit.range.start, client.offset_encoding)
  local end_row, end_col = byte_position(buf, edit.range["end"], client.offset_encoding)
  return {
    buf = buf,
    range = { row, col, end_row, end_col },
    text = (edit.newText:gsub("\r\n?", "\n")),
    display = edit.display or "diff",
  }
end

-- The offer that an answer makes; nil unless every buffer is at the version that its edits are for.
local function offer_of(client, answer)
  local made = { client_id = client.id, id = answer.id, label = answer.label, command = answer.command }
  made.hunks, made.ticks, made.taken = {}, {}, false
  for _, edit in ipairs(answer.edits) do
    local hunk = hunk_of(edit, client)
    if not hunk then
      return nil
    end
    table.insert(made.hunks, hunk)
    made.ticks[hunk.buf] = vim.api.nvim_buf_get_changedtick(hunk.buf)
  end
  return #made.hunks > 0 and made or nil
end

local function answered(client, err, answer)
  if err then
    deaf[client.id] = err.code == METHOD_NOT_FOUND or nil
  elseif type(answer) == "table" and vim.api.nvim_get_mode().mode == "n" then
    M.clear()
    offer = offer_of(client, answer)
    show()
  end
end

local function ask(buf)
  local client = client_of.editor(buf)
  if not client or deaf[client.id] or quiet.reason(buf) or vim.api.nvim_get_mode().mode ~= "n" then
    return
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = vim.lsp.util.buf_versions[buf]
  params.context = { triggerKind = AUTOMATIC }
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  asking.ask(client, METHOD, params, buf, function(err, answer)
    if vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_changedtick(buf) == tick then
      answered(client, err, answer)
    end
  end)
end

-- What was asked before is void: its answer would be for a text that is gone.
local function ask_soon()
  asking.stop()
  asking.soon(options.current.next_edit_debounce_ms, function()
    ask(vim.api.nvim_get_current_buf())
  end)
end

local function changed()
  if offer and not is_current(offer) then
    M.clear()
  end
  if options.current.next_edit and not offer then
    ask_soon()
  end
end

-- Accepting

function M.visible()
  return offer ~= nil and is_current(offer) and vim.api.nvim_get_mode().mode == "n"
end

local function jump(hunk)
  vim.cmd("normal! m'")
  if hunk.buf ~= vim.api.nvim_get_current_buf() then
    vim.cmd.buffer(hunk.buf)
  end
  vim.api.nvim_win_set_cursor(0, { row_of(hunk) + 1, hunk.range[2] })
  vim.cmd("normal! zv")
  show()
end

-- Whether a hunk's range begins where another's ends, or behind it.
local function is_behind(hunk, other)
  local row, end_row = hunk.range[1], other.range[3]
  return hunk.buf == other.buf and (row > end_row or row == end_row and hunk.range[2] >= other.range[4])
end

-- Moves the ranges behind a hunk that was made. Of two insertions in one place, the one named first comes first.
local function follow(made)
  local lines = vim.split(made.text, "\n", { plain = true })
  local row, col, end_row, end_col = unpack(made.range)
  local down = #lines - 1 - (end_row - row)
  local right = #lines[#lines] + (#lines == 1 and col or 0) - end_col
  local named = false
  for _, hunk in ipairs(offer.hunks) do
    named = named or hunk == made
    if hunk ~= made and is_behind(hunk, made) and (named or not vim.deep_equal(hunk.range, made.range)) then
      local range = hunk.range
      range[2] = range[2] + (range[1] == end_row and right or 0)
      range[4] = range[4] + (range[3] == end_row and right or 0)
      range[1], range[3] = range[1] + down, range[3] + down
    end
  end
end

local function apply(hunk)
  local range, lines = placed(hunk)
  vim.api.nvim_buf_set_text(hunk.buf, range[1], range[2], range[3], range[4], lines)
  follow(hunk)
  offer.ticks[hunk.buf] = vim.api.nvim_buf_get_changedtick(hunk.buf)
  if hunk.buf == vim.api.nvim_get_current_buf() then
    local last = #lines[#lines] + (#lines == 1 and range[2] or 0)
    vim.api.nvim_win_set_cursor(0, { range[1] + #lines, math.max(last - 1, 0) })
  end
end

local function report()
  local client = vim.lsp.get_client_by_id(offer.client_id)
  if client and offer.command then
    client:exec_cmd(offer.command, {}, function() end)
  end
end

local function finish()
  report()
  M.clear()
  ask_soon()
end

-- The nearest edit, where the cursor is near it; else the cursor goes there, and nothing is made yet.
local function reached()
  local target = nearest()
  if is_near(target) then
    return target
  end
  jump(target)
end

-- Makes all edits; the first key only goes there where they are out of sight or away from the cursor.
function M.accept()
  if not M.visible() then
    return false
  end
  local target = reached()
  if target then
    for _, hunk in ipairs(offer.hunks) do
      if hunk ~= target then
        apply(hunk)
      end
    end
    apply(target)
    finish()
  end
  return true
end

function M.accept_one()
  if not M.visible() then
    return false
  end
  local target = reached()
  if not target then
    return true
  end
  apply(target)
  offer.taken = true
  offer.hunks = vim.tbl_filter(function(hunk)
    return hunk ~= target
  end, offer.hunks)
  if #offer.hunks == 0 then
    finish()
  else
    show()
  end
  return true
end

function M.dismiss()
  if not offer then
    return false
  end
  local client = vim.lsp.get_client_by_id(offer.client_id)
  if offer.taken then
    report()
  elseif client then
    client:notify("mercury/didReject", { id = offer.id })
  end
  M.clear()
  return true
end

local group = vim.api.nvim_create_augroup("mercury.nextedit", {})
vim.api.nvim_create_autocmd({ "TextChanged", "InsertLeave" }, { group = group, callback = changed })
vim.api.nvim_create_autocmd({ "InsertEnter", "RecordingEnter" }, { group = group, callback = M.clear })
vim.api.nvim_create_autocmd({ "CursorMoved", "WinScrolled", "BufEnter" }, {
  group = group,
  callback = function()
    if offer then
      show()
    end
  end,
})

return M
