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
local anchors = vim.api.nvim_create_namespace("mercury.nextedit.anchors")

---@class mercury.Hunk a part of the offer; its range is kept by an extmark, which moves with the text
---@field buf integer
---@field mark integer
---@field lines string[]
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

-- A position as (row, byte); one behind the last line is the end of the last line.
local function byte_position(buf, position, encoding)
  local line = line_of(buf, position.line)
  if not line then
    local last = vim.api.nvim_buf_line_count(buf) - 1
    return last, #line_of(buf, last)
  end
  return position.line, vim.str_byteindex(line, encoding, position.character, false)
end

-- The hunk's range now, and the text in it.
local function range_of(hunk)
  local mark = vim.api.nvim_buf_get_extmark_by_id(hunk.buf, anchors, hunk.mark, { details = true })
  return { mark[1], mark[2], mark[3].end_row, mark[3].end_col }
end

local function forget(made)
  for _, hunk in ipairs(made.hunks) do
    if vim.api.nvim_buf_is_valid(hunk.buf) then
      vim.api.nvim_buf_clear_namespace(hunk.buf, space, 0, -1)
      vim.api.nvim_buf_del_extmark(hunk.buf, anchors, hunk.mark)
    end
  end
end

-- Display

local function highlighted(text, group)
  return { { text, group } }
end

-- A change inside one line: what goes is struck, what comes stands behind it.
local function draw_inline(hunk, range)
  local group = hunk.display == "ghost" and "MercuryGhost" or "MercuryAdd"
  if range[2] < range[4] then
    vim.api.nvim_buf_set_extmark(hunk.buf, space, range[1], range[2], {
      end_row = range[3],
      end_col = range[4],
      hl_group = "MercuryDelete",
      priority = 200,
    })
  end
  vim.api.nvim_buf_set_extmark(hunk.buf, space, range[3], range[4], {
    virt_text = highlighted(hunk.lines[1], group),
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

-- A change of whole lines: the old ones are struck, the new ones stand below them, complete.
local function draw_lines(hunk, range)
  local first, last = line_of(hunk.buf, range[1]), line_of(hunk.buf, range[3])
  local lines = vim.deepcopy(hunk.lines)
  lines[1] = first:sub(1, range[2]) .. lines[1]
  lines[#lines] = lines[#lines] .. last:sub(range[4] + 1)
  local stop = range[3]
  if range[4] == 0 and stop > range[1] and lines[#lines] == last then
    table.remove(lines)
    stop = stop - 1
  end
  for row = range[1], stop do
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
  local range = range_of(hunk)
  local inserts = range[1] == range[3] and range[2] == range[4]
  local at_end = range[4] == #line_of(hunk.buf, range[3])
  if #hunk.lines == 1 and range[1] == range[3] then
    draw_inline(hunk, range)
  elseif inserts and at_end then
    draw_below(hunk, range, hunk.lines, hunk.display == "ghost" and "MercuryGhost" or "MercuryAdd")
  else
    draw_lines(hunk, range)
  end
end

local function in_sight(hunk)
  local range = range_of(hunk)
  return hunk.buf == vim.api.nvim_get_current_buf()
    and range[1] + 1 >= vim.fn.line("w0")
    and range[1] + 1 <= vim.fn.line("w$")
end

local function is_near(hunk)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local range = range_of(hunk)
  return in_sight(hunk) and row >= range[1] - NEAR and row <= range[3] + NEAR
end

-- The hunk that is next: the nearest in this buffer, otherwise the first.
local function nearest()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local best, distance = offer.hunks[1], math.huge
  for _, hunk in ipairs(offer.hunks) do
    local away = math.abs(range_of(hunk)[1] - row)
    if hunk.buf == vim.api.nvim_get_current_buf() and away < distance then
      best, distance = hunk, away
    end
  end
  return best
end

-- Where the edit cannot be seen, a note at the end of the cursor's line says where it is.
local function draw_hint(hunk)
  local buf, row = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1] - 1
  local line = range_of(hunk)[1]
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

local function show()
  clear_display()
  if not offer then
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
  if offer then
    forget(offer)
    offer = nil
  end
end

local function hunk_of(edit, client)
  local buf = vim.uri_to_bufnr(edit.textDocument.uri)
  local version = edit.textDocument.version
  if not vim.api.nvim_buf_is_loaded(buf) or version ~= vim.lsp.util.buf_versions[buf] or quiet.unfit(buf) then
    return nil
  end
  local row, col = byte_position(buf, edit.range.start, client.offset_encoding)
  local end_row, end_col = byte_position(buf, edit.range["end"], client.offset_encoding)
  local text = edit.newText:gsub("\r\n?", "\n")
  if edit.range["end"].line >= vim.api.nvim_buf_line_count(buf) and vim.endswith(text, "\n") then
    text = text:sub(1, -2)
  end
  local mark = vim.api.nvim_buf_set_extmark(buf, anchors, row, col, {
    end_row = end_row,
    end_col = end_col,
    right_gravity = false,
    end_right_gravity = true,
  })
  return { buf = buf, mark = mark, lines = vim.split(text, "\n", { plain = true }), display = edit.display or "diff" }
end

-- The offer that an answer makes; nil unless every buffer is at the version that its edits are for.
local function offer_of(client, answer)
  local made = { client_id = client.id, id = answer.id, label = answer.label, command = answer.command }
  made.hunks, made.ticks, made.taken = {}, {}, false
  for _, edit in ipairs(answer.edits) do
    local hunk = hunk_of(edit, client)
    if not hunk then
      forget(made)
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
  local range = range_of(hunk)
  vim.api.nvim_win_set_cursor(0, { range[1] + 1, range[2] })
  vim.cmd("normal! zv")
  show()
end

local function apply(hunk)
  local range = range_of(hunk)
  vim.api.nvim_buf_set_text(hunk.buf, range[1], range[2], range[3], range[4], hunk.lines)
  vim.api.nvim_buf_del_extmark(hunk.buf, anchors, hunk.mark)
  offer.ticks[hunk.buf] = vim.api.nvim_buf_get_changedtick(hunk.buf)
  if hunk.buf == vim.api.nvim_get_current_buf() then
    local last = #hunk.lines[#hunk.lines] + (#hunk.lines == 1 and range[2] or 0)
    vim.api.nvim_win_set_cursor(0, { range[1] + #hunk.lines, math.max(last - 1, 0) })
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
