-- An offer of next edits: where each of them goes, how it is made, and how all of them are taken back.
local quiet = require("mercury.quiet")

local M = {}

---@class mercury.Hunk one edit of an offer
---@field buf integer
---@field row integer the line on which it begins
---@field edit table as the server sent it
---@field range? [integer, integer, integer, integer] of bytes; the text ends where a line behind the last would begin;
---  nil while the file is not loaded
---@field text string
---@field display "ghost"|"diff"
---@field left_out? boolean

---@class mercury.Offer
---@field client_id integer
---@field encoding string in which the server counts columns
---@field id string
---@field label string
---@field summary string
---@field note string
---@field is_place boolean whether it only leads to where something is broken
---@field hunks mercury.Hunk[]
---@field command? lsp.Command
---@field versions table<integer, integer> the version of each loaded buffer that the ranges are of
---@field count integer how many edits there were
---@field made integer how many of them were accepted already
---@field steps table<integer, mercury.Step> by buffer

---@class mercury.Step
---@field name string
---@field before integer a place in the buffer's undo tree
---@field after integer

local CHANGED, BYTE_ORDER_MARK = "has changed since", "\239\187\191"

local last = nil ---@type mercury.Offer? what was made last

function M.title(offer)
  return offer.label ~= "" and offer.label or offer.summary
end

function M.name(buf)
  return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ":~:.")
end

local function line_of(buf, row)
  return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
end

-- All lines of a buffer, or of its file where it is not loaded.
function M.lines(buf)
  if vim.api.nvim_buf_is_loaded(buf) then
    return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  end
  local ok, lines = pcall(vim.fn.readfile, vim.api.nvim_buf_get_name(buf))
  lines = ok and lines or { "" }
  lines[1] = (lines[1] or ""):gsub("^" .. BYTE_ORDER_MARK, "")
  return vim.tbl_map(function(line)
    return (line:gsub("\r$", ""))
  end, lines)
end

local function unix(text)
  return (text:gsub("\r\n?", "\n"))
end

-- An LSP range in bytes, the last place of which is the beginning of the line behind the last one.
local function bytes(range, count, get_line, encoding)
  local function at(position)
    local line = get_line(position.line)
    if not line then
      return count, 0
    end
    return position.line, vim.str_byteindex(line, encoding, position.character, false)
  end
  local row, col = at(range.start)
  return { row, col, at(range["end"]) }
end

local function place(hunk, encoding)
  hunk.range = bytes(hunk.edit.range, vim.api.nvim_buf_line_count(hunk.buf), function(row)
    return line_of(hunk.buf, row)
  end, encoding)
  hunk.row = math.min(hunk.range[1], vim.api.nvim_buf_line_count(hunk.buf) - 1)
end

-- The range of a hunk in its file, of which these are all lines.
local function range_in(lines, hunk, encoding)
  return hunk.range or bytes(hunk.edit.range, #lines, function(row)
    return lines[row + 1]
  end, encoding)
end

-- Whether what stands in a range, of which these are the lines, is what the hunk takes away.
local function fits(lines, range, hunk)
  local row, col, end_row, end_col = unpack(range)
  lines[end_row - row + 1] = (lines[end_row - row + 1] or ""):sub(1, end_col)
  lines[1] = lines[1]:sub(col + 1)
  local old = hunk.edit.oldText
  return not old or table.concat(lines, "\n") == unix(old)
end

local function hunk_of(edit, client)
  local buf, version = vim.uri_to_bufnr(edit.textDocument.uri), edit.textDocument.version
  local hunk = { buf = buf, row = edit.range.start.line, edit = edit, text = unix(edit.newText) }
  hunk.display = edit.display or "diff"
  if version == nil or version == vim.NIL then
    return hunk
  elseif vim.api.nvim_buf_is_loaded(buf) and version == vim.lsp.util.buf_versions[buf] and not quiet.unfit(buf) then
    place(hunk, client.offset_encoding)
    return hunk
  end
end

-- The version of a buffer's text, which stays when the buffer is written; `changedtick` does not.
---@param buf integer
---@return integer
function M.version(buf)
  return vim.lsp.util.buf_versions[buf] or vim.api.nvim_buf_get_changedtick(buf)
end

-- The offer that an answer makes; nil unless every open buffer is at the version that its edits are for.
function M.new(client, answer)
  local made = { client_id = client.id, encoding = client.offset_encoding, id = answer.id, command = answer.command }
  made.label = answer.label or ""
  made.is_place = answer.kind == "diagnostic"
  made.hunks, made.versions, made.steps, made.made = {}, {}, {}, 0
  for _, edit in ipairs(answer.edits) do
    local hunk = hunk_of(edit, client)
    if not hunk then
      return nil
    end
    table.insert(made.hunks, hunk)
    made.versions[hunk.buf] = hunk.range and M.version(hunk.buf)
  end
  made.count = #made.hunks
  made.summary = answer.summary or (#made.hunks == 1 and "1 edit" or ("%d edits"):format(#made.hunks))
  made.note = answer.note or ""
  return #made.hunks > 0 and made or nil
end

-- Whether every loaded buffer is as it was when the ranges were computed.
function M.is_current(offer)
  for buf, version in pairs(offer.versions) do
    if not vim.api.nvim_buf_is_loaded(buf) or M.version(buf) ~= version then
      return false
    end
  end
  return true
end

-- Lets what a file's modelines set wait until somebody looks at the file.
local function heed_modelines_later(buf)
  vim.api.nvim_create_autocmd("BufWinEnter", {
    buffer = buf,
    once = true,
    callback = function()
      vim.api.nvim_create_autocmd("User", { pattern = "MercuryOpened", once = true, callback = function() end })
      vim.api.nvim_exec_autocmds("User", { pattern = "MercuryOpened", modeline = true })
    end,
  })
end

-- Whether there was a swap file already, after whose the one of a buffer that has been read is called.
local function is_swapped(buf)
  local name = vim.fn.swapname(buf)
  return name ~= "" and not vim.endswith(name, ".swp")
end

-- Reads a file into its buffer without a question, since one about a swap file would stop everything, and without
-- doing what its modelines say; why that is not possible, if so.
---@return string?
local function load(buf)
  if vim.api.nvim_buf_is_loaded(buf) then
    return
  end
  local shortmess, modelines = vim.o.shortmess, vim.o.modelines
  vim.opt.shortmess:append("A")
  vim.o.modelines = 0
  vim.cmd(("silent! call bufload(%d)"):format(buf))
  vim.o.shortmess, vim.o.modelines = shortmess, modelines
  if not vim.api.nvim_buf_is_loaded(buf) then
    return "cannot be read"
  elseif is_swapped(buf) then
    vim.api.nvim_buf_delete(buf, { force = true, unload = true })
    return "has a swap file, so another editor may be changing it: open it first"
  end
  heed_modelines_later(buf)
end

-- Why a hunk of a file that was not open cannot be made; nil where it can be.
local function misfit(hunk, encoding)
  local problem = load(hunk.buf)
  if problem then
    return problem
  elseif quiet.unfit(hunk.buf) then
    return "is not modifiable"
  end
  place(hunk, encoding)
  local first, final = hunk.range[1], hunk.range[3]
  if not fits(vim.api.nvim_buf_get_lines(hunk.buf, first, final + 1, false), hunk.range, hunk) then
    return CHANGED
  end
end

-- Loads what is not open of the hunks that are meant; says why where one of them does not fit its file any more.
---@param is_meant fun(hunk: mercury.Hunk): boolean
---@return string?
function M.load(offer, is_meant)
  for _, hunk in ipairs(vim.tbl_filter(is_meant, offer.hunks)) do
    if not hunk.range then
      local problem = misfit(hunk, offer.encoding)
      if problem then
        return ("%s %s"):format(M.name(hunk.buf), problem)
      end
      offer.versions[hunk.buf] = M.version(hunk.buf)
    end
  end
end

-- Why one of the files that are not open does not fit its hunks any more, as it is on the disk; nil where all do.
---@return string?
function M.outdated(offer)
  local read = {}
  for _, hunk in ipairs(offer.hunks) do
    if not hunk.range then
      local lines = read[hunk.buf] or M.lines(hunk.buf)
      read[hunk.buf] = lines
      local range = range_in(lines, hunk, offer.encoding)
      if not fits(vim.list_slice(lines, range[1] + 1, range[3] + 1), range, hunk) then
        return ("%s %s"):format(M.name(hunk.buf), CHANGED)
      end
    end
  end
end

-- Whether writing ends the last line, which has no end of its own.
local function ends_when_written(buf)
  local bo = vim.bo[buf]
  return not bo.endofline and bo.fixendofline and not bo.binary
end

-- The range of the buffer that the hunk replaces, and the lines that come there. The end of a buffer's last line is no
-- part of any range: where the hunk's text ends with one, it is there already; where a line is added or taken away
-- behind it, the line end before that one comes or goes.
function M.placed(hunk)
  local row, col, end_row, end_col = unpack(hunk.range)
  local last_row = vim.api.nvim_buf_line_count(hunk.buf) - 1
  local width, text = #line_of(hunk.buf, last_row), hunk.text
  local at_end = end_row == last_row and end_col == width and ends_when_written(hunk.buf)
  if end_row <= last_row and not at_end then
    return hunk.range, vim.split(text, "\n", { plain = true })
  elseif row > last_row then
    row, col, text = last_row, width, "\n" .. text
  elseif text == "" and col == 0 and row > 0 and (row < end_row or col < end_col) then
    row, col = row - 1, #line_of(hunk.buf, row - 1)
  end
  return { row, col, last_row, width }, vim.split((text:gsub("\n$", "")), "\n", { plain = true })
end

-- The last line that a range changes.
local function final_row(range)
  return range[4] == 0 and range[3] > range[1] and range[3] - 1 or range[3]
end

-- The hunks of a file in the order of its lines, those that change the same line together. `lines` are all of its file.
---@return mercury.Hunk[][]
function M.by_line(offer, hunks, lines)
  local places = {}
  for index, hunk in ipairs(hunks) do
    table.insert(places, { hunk = hunk, range = range_in(lines, hunk, offer.encoding), index = index })
  end
  table.sort(places, function(one, other)
    for _, part in ipairs({ 1, 2 }) do
      if one.range[part] ~= other.range[part] then
        return one.range[part] < other.range[part]
      end
    end
    return one.index < other.index
  end)
  local groups, final = {}, -1
  for _, place in ipairs(places) do
    if place.range[1] > final then
      table.insert(groups, {})
    end
    table.insert(groups[#groups], place.hunk)
    final = math.max(final, final_row(place.range))
  end
  return groups
end

-- The text of these lines from one place to another.
local function between(lines, row, col, end_row, end_col)
  local parts = {}
  for at = row, end_row do
    table.insert(parts, (lines[at + 1] or ""):sub(at == row and col + 1 or 1, at == end_row and end_col or -1))
  end
  return table.concat(parts, "\n")
end

-- The whole lines that hunks, in their order, take away and bring, and the number of the first. `lines` are all of their
-- file.
function M.whole_lines(offer, hunks, lines)
  local row = range_in(lines, hunks[1], offer.encoding)[1]
  local text, end_row, end_col = "", row, 0
  for _, hunk in ipairs(hunks) do
    local range = range_in(lines, hunk, offer.encoding)
    text = text .. between(lines, end_row, end_col, range[1], range[2]) .. hunk.text
    end_row, end_col = range[3], range[4]
  end
  local old = vim.list_slice(lines, row + 1, end_row + 1)
  local new = vim.split(text .. between(lines, end_row, end_col, end_row, -1), "\n", { plain = true })
  if end_row >= #lines and new[#new] == "" then -- the end of the file is no line
    table.remove(new)
  end
  while #old > 0 and old[#old] == new[#new] do
    old[#old], new[#new] = nil, nil
  end
  while #old > 0 and old[1] == new[1] do
    table.remove(old, 1)
    table.remove(new, 1)
    row = row + 1
  end
  return row + 1, old, new
end

-- Whether a hunk's range begins where another's ends, or behind it.
local function is_behind(hunk, other)
  local row, end_row = hunk.range[1], other.range[3]
  return hunk.buf == other.buf and (row > end_row or row == end_row and hunk.range[2] >= other.range[4])
end

-- Moves the ranges behind a hunk that was made. Of two insertions in one place, the one named first comes first.
local function follow(offer, made)
  local lines = vim.split(made.text, "\n", { plain = true })
  local row, col, end_row, end_col = unpack(made.range)
  local down = #lines - 1 - (end_row - row)
  local right = #lines[#lines] + (#lines == 1 and col or 0) - end_col
  local named = false
  for _, hunk in ipairs(offer.hunks) do
    named = named or hunk == made
    local moves = hunk ~= made and hunk.range and is_behind(hunk, made)
    if moves and (named or not vim.deep_equal(hunk.range, made.range)) then
      local range = hunk.range
      range[2] = range[2] + (range[1] == end_row and right or 0)
      range[4] = range[4] + (range[3] == end_row and right or 0)
      range[1], range[3], hunk.row = range[1] + down, range[3] + down, hunk.row + down
    end
  end
end

local function place_in_undo_tree(buf)
  return vim.api.nvim_buf_is_loaded(buf) and vim.fn.undotree(buf).seq_cur or -1
end

-- Ends the undo step of a buffer: where it has no window, no key does.
local function end_step(buf)
  vim.api.nvim_buf_call(buf, function()
    vim.cmd("let &g:undolevels = &g:undolevels")
  end)
end

local function begin_step(offer, buf)
  if not offer.steps[buf] then
    end_step(buf)
    offer.steps[buf] = { before = place_in_undo_tree(buf), name = M.name(buf) }
  end
end

-- Makes an edit; returns where its last character is, as a cursor.
function M.make(offer, hunk)
  begin_step(offer, hunk.buf)
  local range, lines = M.placed(hunk)
  vim.api.nvim_buf_set_text(hunk.buf, range[1], range[2], range[3], range[4], lines)
  vim.bo[hunk.buf].buflisted = true
  follow(offer, hunk)
  offer.versions[hunk.buf] = M.version(hunk.buf)
  offer.steps[hunk.buf].after = place_in_undo_tree(hunk.buf)
  offer.made = offer.made + 1
  last = offer
  local width = #lines[#lines] + (#lines == 1 and range[2] or 0)
  return { range[1] + #lines, math.max(width - 1, 0) }
end

-- What is changed from here on is no part of the offer's undo steps.
function M.finish(offer)
  vim.tbl_map(end_step, vim.tbl_keys(offer.steps))
end

-- Takes back the offer that was made last, in all of its buffers or in none; says which were changed or closed since.
---@return string title of what was taken back
---@return integer count of the files in which it was
---@return string[] names of buffers with changes that this would lose
function M.undo()
  local made, changed = {}, {}
  for buf, step in pairs(last and last.steps or {}) do
    local now = place_in_undo_tree(buf)
    if now == step.after then
      made[buf] = step.before
    elseif now ~= step.before then
      table.insert(changed, step.name)
    end
  end
  if #changed > 0 then
    return "", 0, changed
  end
  for buf, before in pairs(made) do
    vim.api.nvim_buf_call(buf, function()
      vim.cmd("silent undo " .. before)
    end)
  end
  return last and M.title(last) or "", vim.tbl_count(made), changed
end

return M
