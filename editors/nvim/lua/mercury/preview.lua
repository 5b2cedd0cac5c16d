-- The list of all edits of an offer, file by file, each with its lines: to look at, to leave some out, to make the rest.
local offers = require("mercury.offer")
local page = require("mercury.page")

local M = {}

local space = vim.api.nvim_create_namespace("mercury.preview")
local KEYS = "a apply · x exclude or include · <CR> go there · q close"

local open = nil ---@type { buf: integer, close: fun(), at: table<integer, mercury.Hunk[]>, offer: mercury.Offer, act: table }?

-- The edits of each file, in the order in which files and lines come.
local function by_file(hunks)
  local files, order = {}, {}
  for _, hunk in ipairs(hunks) do
    if not files[hunk.buf] then
      files[hunk.buf] = {}
      table.insert(order, hunk.buf)
    end
    table.insert(files[hunk.buf], hunk)
  end
  return files, order
end

---@class mercury.Sheet what the list shows: lines, the group of each, and the edits to which each belongs
---@field lines string[]
---@field groups table<integer, string>
---@field at table<integer, mercury.Hunk[]>

local function add(sheet, text, group, hunks)
  table.insert(sheet.lines, text)
  sheet.groups[#sheet.lines] = group
  sheet.at[#sheet.lines] = hunks
end

local function add_hunks(sheet, offer, hunks, lines)
  local number, old, new = offers.whole_lines(offer, hunks, lines)
  local label = ("%s %4d "):format(hunks[1].left_out and "✗" or "✓", number)
  local function part(sign, texts, group)
    for _, text in ipairs(texts) do
      add(sheet, label .. sign .. " " .. text, hunks[1].left_out and "Comment" or group, hunks)
      label = (" "):rep(7)
    end
  end
  part("-", old, "MercuryDelete")
  part("+", new, "MercuryAdd")
end

local function wanted(offer)
  return #vim.tbl_filter(function(hunk)
    return not hunk.left_out
  end, offer.hunks)
end

---@return mercury.Sheet
local function sheet_of(offer)
  local sheet = { lines = {}, groups = {}, at = {} }
  add(sheet, ("%d of %d: %s"):format(wanted(offer), #offer.hunks, KEYS), "MercuryHint")
  if offer.note ~= "" then
    add(sheet, offer.note, "MercuryHint")
  end
  local files, order = by_file(offer.hunks)
  for _, buf in ipairs(order) do
    add(sheet, offers.name(buf), "Title")
    local lines = offers.lines(buf)
    for _, hunks in ipairs(offers.by_line(offer, files[buf], lines)) do
      add_hunks(sheet, offer, hunks, lines)
    end
  end
  return sheet
end

local function draw(buf, sheet)
  vim.bo[buf].modifiable = true
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, sheet.lines)
  vim.bo[buf].modifiable = false
  vim.api.nvim_buf_clear_namespace(buf, space, 0, -1)
  for row, group in pairs(sheet.groups) do
    vim.api.nvim_buf_set_extmark(buf, space, row - 1, 0, { end_row = row, hl_group = group, hl_eol = true })
  end
end

function M.is_open()
  return open ~= nil and vim.api.nvim_buf_is_valid(open.buf)
end

function M.close()
  local was = open
  open = nil
  if was then
    was.close()
  end
end

-- Makes what is not left out.
function M.make()
  local act = open.act
  M.close()
  act.make()
end

-- Goes to the edit at the cursor.
function M.go()
  local act, hunks = open.act, open.at[vim.fn.line(".")]
  if hunks then
    M.close()
    act.jump(hunks[1])
  end
end

local function leave_out()
  local hunks = open.at[vim.fn.line(".")]
  if hunks then
    local left_out = not hunks[1].left_out
    for _, hunk in ipairs(hunks) do
      hunk.left_out = left_out
    end
    local cursor = vim.api.nvim_win_get_cursor(0)
    draw(open.buf, sheet_of(open.offer))
    vim.api.nvim_win_set_cursor(0, cursor)
  end
end

-- Opens the list; `act` has what making, going somewhere and closing come to.
function M.open(offer, act)
  M.close()
  local sheet = sheet_of(offer)
  local buf, close = page.open(offers.title(offer), sheet.lines)
  open = { buf = buf, close = close, at = sheet.at, offer = offer, act = act }
  vim.wo[0].cursorline = true
  draw(buf, sheet)
  local function map(keys, call)
    for _, key in ipairs(keys) do
      vim.keymap.set("n", key, call, { buffer = buf, nowait = true })
    end
  end
  map({ "a", "y" }, M.make)
  map({ "<CR>" }, M.go)
  map({ "x" }, leave_out)
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    callback = function()
      open = open and open.buf ~= buf and open or nil
      vim.schedule(act.closed)
    end,
  })
  vim.fn.search("^✓", "w")
end

return M
