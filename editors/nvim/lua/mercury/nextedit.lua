-- The next edit: asked for in normal mode, shown as a diff in place, jumped to when out of sight, made on a key.
local asking, resting = require("mercury.asking").new(), require("mercury.asking").new()
local client_of = require("mercury.client")
local keys = require("mercury.keys")
local offers = require("mercury.offer")
local options = require("mercury.options")
local preview = require("mercury.preview")
local quiet = require("mercury.quiet")
local say = require("mercury.say").say

local M = {}

local METHOD, METHOD_NOT_FOUND = "mercury/nextEdit", -32601
local INVOKED, AUTOMATIC = 1, 2
local NEAR = 2
local EAGER_MS = 10
-- The first question after an edit comes soon, for the model has to read the edit whatever the line is.
local FIRST_REST_MS, REST_MS, FRESH_MS = 150, 500, 300000
local space = vim.api.nvim_create_namespace("mercury.nextedit")

local offer = nil ---@type mercury.Offer?
local rejected = nil ---@type { buf: integer, version: integer }? where the user has rejected one, as long as nothing changes
local edited = nil ---@type { buf: integer, row: integer, at: integer, read?: true }? where and when the last change was, and whether a question has followed
local rested = nil ---@type { buf: integer, row: integer, version: integer }? where a line was asked about last
local deaf = {} ---@type table<integer, true> clients whose server knows no next edits
local at_rest ---@type fun()

local function line_of(buf, row)
  return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
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

-- Whether only lines come in, before one that stays, and the line above is on the screen: what hangs below it is seen.
local function inserts_in_sight(hunk, range)
  local win = vim.fn.bufwinid(hunk.buf)
  local inserts = range[1] == range[3] and range[2] == range[4]
  return inserts and win ~= -1 and range[1] > vim.fn.line("w0", win) - 1
end

-- A change of whole lines, without one at either end that stays: the old ones are struck, the new ones stand below,
-- complete.
local function draw_lines(hunk, range, lines)
  local first, last = line_of(hunk.buf, range[1]), line_of(hunk.buf, range[3])
  lines[1] = first:sub(1, range[2]) .. lines[1]
  lines[#lines] = lines[#lines] .. last:sub(range[4] + 1)
  local start, stop = range[1], range[3]
  local from_below = range[4] == 0 and stop > start
  if (from_below or inserts_in_sight(hunk, range)) and lines[#lines] == last then
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
  local range, lines = offers.placed(hunk)
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

local function is_wanted(hunk)
  return not hunk.left_out
end

local function wanted()
  return vim.tbl_filter(is_wanted, offer.hunks)
end

local function in_sight(hunk)
  local win = vim.fn.bufwinid(hunk.buf)
  return win ~= -1 and hunk.row + 1 >= vim.fn.line("w0", win) and hunk.row + 1 <= vim.fn.line("w$", win)
end

local function is_near(hunk)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local here = hunk.buf == vim.api.nvim_get_current_buf() and in_sight(hunk)
  return here and row >= hunk.range[1] - NEAR and row <= hunk.range[3] + NEAR
end

-- The hunk that is next: the nearest in this buffer, otherwise the first.
local function nearest()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local best, distance = wanted()[1], math.huge
  for _, hunk in ipairs(wanted()) do
    local away = math.abs(hunk.row - row)
    if hunk.buf == vim.api.nvim_get_current_buf() and away < distance then
      best, distance = hunk, away
    end
  end
  return best
end

-- Those of this buffer that scrolling would show.
local function out_of_sight()
  return vim.tbl_filter(function(hunk)
    return hunk.buf == vim.api.nvim_get_current_buf() and not in_sight(hunk)
  end, wanted())
end

-- What all the edits are, where the next one is if the key only goes there, and the key.
local function hint()
  local hunk, mapped = nearest(), keys.key_of("n", "next_edit")
  local key = mapped and (" (%s)"):format(mapped) or ""
  if is_near(hunk) and not offer.is_place then
    local unseen = #out_of_sight()
    return ("next edit: %s%s%s"):format(offer.summary, key, unseen > 0 and (" · %d out of sight"):format(unseen) or "")
  end
  local here = hunk.buf == vim.api.nvim_get_current_buf()
  local below = hunk.row > vim.api.nvim_win_get_cursor(0)[1] - 1
  local file = vim.fs.basename(vim.api.nvim_buf_get_name(hunk.buf))
  local where = here and ("line %d"):format(hunk.row + 1) or ("%s:%d"):format(file, hunk.row + 1)
  local more = #offer.hunks > 1 and " · " .. offer.summary or ""
  local what = offer.is_place and offer.label or "next edit"
  return ("%s %s: %s%s%s"):format(not here and "→" or below and "↓" or "↑", what, where, key, more)
end

-- A sentence in lines that fit.
local function wrapped(text, width)
  local lines = { "" }
  for word in text:gmatch("%S+") do
    local longer = vim.trim(lines[#lines] .. " " .. word)
    if vim.fn.strdisplaywidth(longer) > width and lines[#lines] ~= "" then
      table.insert(lines, word)
    else
      lines[#lines] = longer
    end
  end
  return lines
end

-- Said at the cursor's line: what will change away from it or where it cannot be seen, and what the server has to say
-- about it. What does not fit behind the line stands below it.
local function draw_hint()
  local below = offer.note ~= "" and { offer.note } or {}
  local mark = {}
  if offer.is_place or not is_near(nearest()) or not vim.iter(wanted()):all(in_sight) then
    local text = "  " .. hint()
    local info = vim.fn.getwininfo(vim.api.nvim_get_current_win())[1]
    if vim.fn.virtcol("$") + vim.fn.strdisplaywidth(text) + info.textoff <= info.width then
      mark.virt_text, mark.virt_text_pos = highlighted(text, "MercuryHint"), "eol"
    else
      table.insert(below, 1, vim.trim(text))
    end
  end
  local width = vim.api.nvim_win_get_width(0) - 8
  for _, text in ipairs(below) do
    mark.virt_lines = mark.virt_lines or {}
    for _, line in ipairs(wrapped(text, width)) do
      table.insert(mark.virt_lines, highlighted("  " .. line, "MercuryHint"))
    end
  end
  vim.api.nvim_buf_set_extmark(0, space, vim.api.nvim_win_get_cursor(0)[1] - 1, 0, mark)
end

local function clear_display()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    vim.api.nvim_buf_clear_namespace(buf, space, 0, -1)
  end
end

-- Ranges of a text that has changed since are not drawn: the cursor's move is heard of before the change is.
local function show()
  clear_display()
  if not offer or not offers.is_current(offer) then
    return
  end
  for _, hunk in ipairs(wanted()) do
    if hunk.range and not offer.is_place then
      draw(hunk)
    end
  end
  if #wanted() > 0 and not quiet.unfit(vim.api.nvim_get_current_buf()) then
    draw_hint()
  end
end

-- Asking

local function put_away()
  clear_display()
  preview.close()
  offer = nil
end

-- Ends the question of the line where the user rests; if nobody has heard its answer, it may be asked again.
local function stop_resting()
  if resting.is_waiting() then
    rested = nil
  end
  resting.stop()
end

function M.clear()
  asking.stop()
  stop_resting()
  put_away()
end

-- An offer that is on the screen already stays as it is: parts of it may be made or left out by now. If the server has
-- none any more, the edit that it followed from is gone.
local function answered(client, err, answer)
  if err then
    deaf[client.id] = err.code == METHOD_NOT_FOUND or nil
  elseif vim.api.nvim_get_mode().mode ~= "n" or preview.is_open() then
    return
  elseif type(answer) ~= "table" then
    if offer and offer.made == 0 then
      put_away()
    end
  elseif not (offer and offer.id == answer.id and offers.is_current(offer)) then
    put_away()
    offer = offers.new(client, answer)
    show()
    if offer then
      client:notify("textDocument/didShowInlineEdit", { item = { command = offer.command } })
    end
  end
end

-- Another server of this buffer that can rename: what it can do is not offered twice.
local function rename_provider(buf)
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buf, method = "textDocument/rename" })) do
    if not vim.list_contains(client_of.names, client.name) then
      return client.name
    end
  end
end

-- Whether that was asked: not in other modes, nor where nothing may be shown.
local function ask(asker, more, heard)
  local buf = vim.api.nvim_get_current_buf()
  local client = client_of.editor(buf)
  if not client or deaf[client.id] or quiet.reason(buf) or vim.api.nvim_get_mode().mode ~= "n" then
    return false
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.textDocument.version = vim.lsp.util.buf_versions[buf]
  local context =
    { triggerKind = AUTOMATIC, closedFiles = true, renameProvider = rename_provider(buf), typing = false, places = true }
  params.context = vim.tbl_extend("force", context, more)
  local version = offers.version(buf)
  asker.ask(client, METHOD, params, buf, function(err, answer)
    if vim.api.nvim_buf_is_loaded(buf) and offers.version(buf) == version then
      heard(client, err, answer)
    end
  end)
  return true
end

-- What was asked before is void: its answer would be for a text that is gone.
local function ask_soon()
  asking.stop()
  local client = client_of.editor(vim.api.nvim_get_current_buf())
  local wait = options.current.next_edit_debounce_ms
  if client and require("mercury.status").is_eager(client.id) then
    wait = math.min(wait, EAGER_MS)
  end
  asking.soon(wait, function()
    if resting.is_waiting() then -- a server answers the newest question alone
      stop_resting()
      resting.soon(FIRST_REST_MS, at_rest)
    end
    ask(asking, {}, answered)
  end)
end

local function cursor()
  local buf = vim.api.nvim_get_current_buf()
  return { buf = buf, row = vim.api.nvim_win_get_cursor(0)[1], version = offers.version(buf) }
end

local function changed()
  stop_resting()
  if offer and not offers.is_current(offer) then
    M.clear()
  end
  edited = vim.tbl_extend("error", cursor(), { at = vim.uv.now() })
  M.refresh()
end

-- Whether an edit is, not only a place to go to.
local function is_offered_in(buf)
  return offer ~= nil and not offer.is_place and vim.iter(offer.hunks):any(function(hunk)
    return hunk.buf == buf
  end)
end

-- Who rests in another line after an edit may be about to change it as well. What is on offer elsewhere stays if there
-- is nothing here.
function at_rest()
  local here = cursor()
  local client = client_of.editor(here.buf)
  local function heard(_, err, answer)
    if client and not err and type(answer) == "table" then
      answered(client, err, answer)
    end
  end
  if not client or is_offered_in(here.buf) or not require("mercury.status").is_asked_at_rest(client.id) then
    return
  elseif asking.is_waiting() then
    resting.soon(FIRST_REST_MS, at_rest)
  elseif not vim.deep_equal(rested, here) and ask(resting, { rests = true }, heard) then
    rested = here
    edited.read = true
  end
end

local function moved()
  if offer then
    show()
  end
  local here = cursor()
  if vim.deep_equal(rested, here) then
    return -- the question is about the line, wherever in it the cursor is
  end
  resting.stop()
  rested = nil
  local is_fresh = edited and vim.uv.now() - edited.at < FRESH_MS
  local is_elsewhere = is_fresh and (here.buf ~= edited.buf or here.row ~= edited.row)
  if is_elsewhere and options.current.next_edit then
    resting.soon(edited.read and REST_MS or FIRST_REST_MS, at_rest)
  end
end

-- Asks by hand what follows from the last edits, and in the cursor's line.
function M.ask()
  local function heard(client, err, answer)
    answered(client, err, answer)
    if not offer then
      say("there is no next edit; :Mercury why has the reason")
    end
  end
  if not ask(asking, { triggerKind = INVOKED }, heard) then
    say("there is no next edit; :Mercury why has the reason")
  end
end

-- Asks again for what follows from the last edits.
function M.refresh()
  if options.current.next_edit then
    ask_soon()
  end
end

-- Other places are broken than were.
function M.places_changed()
  if vim.api.nvim_get_mode().mode == "n" and (not offer or offer.is_place) then
    M.refresh()
  end
end

local function was_rejected()
  local buf = vim.api.nvim_get_current_buf()
  return rejected and rejected.buf == buf and rejected.version == offers.version(buf)
end

-- Why there is no next edit as far as this side knows, or what there is; nil where the server knows more.
function M.reason()
  local client = client_of.editor(vim.api.nvim_get_current_buf())
  if offer and offers.is_current(offer) then
    local note = offer.note ~= "" and "; " .. offer.note or ""
    return ("%s (%s)%s"):format(offer.label, offer.summary, note)
  elseif not options.current.next_edit then
    return "the option next_edit is false"
  elseif not client then
    return "another plugin shows next edits, by the client mercury-copilot"
  elseif deaf[client.id] then
    return "this server does not support next edits"
  elseif was_rejected() then
    return "you have rejected it; your next change asks again"
  end
end

-- Accepting

function M.visible()
  return offer ~= nil and offers.is_current(offer) and vim.api.nvim_get_mode().mode == "n"
end

-- The server, which reads the files again, is asked for what fits them now.
local function drop(problem)
  M.clear()
  ask_soon()
  say("next edit not applied: " .. problem, vim.log.levels.WARN)
end

-- Goes to a buffer, in a window that shows it already, or beside what must not be left.
local function visit(buf)
  local win = vim.fn.bufwinid(buf)
  if win ~= -1 then
    vim.api.nvim_set_current_win(win)
    return
  end
  vim.bo[buf].buflisted = true
  if not pcall(vim.cmd.buffer, buf) then
    vim.cmd.sbuffer(buf)
  end
end

-- All edits of a file are placed before any of them is made: that one would move the others.
local function jump(hunk)
  local problem = offers.load(offer, function(each)
    return each.buf == hunk.buf
  end)
  if problem then
    return drop(problem)
  end
  vim.cmd("normal! m'")
  visit(hunk.buf)
  local row = math.min(hunk.row + 1, vim.api.nvim_buf_line_count(0))
  vim.api.nvim_win_set_cursor(0, { row, hunk.range[2] })
  vim.cmd("normal! zv")
  show()
end

local function report()
  local client = vim.lsp.get_client_by_id(offer.client_id)
  if client and offer.command then
    local arguments = offer.made < offer.count and { offer.id, offer.made } or { offer.id }
    client:exec_cmd(vim.tbl_extend("force", offer.command, { arguments = arguments }), {}, function() end)
  end
end

local function files(count)
  return count == 1 and "1 file" or count .. " files"
end

local function finish()
  local count = vim.tbl_count(offer.steps)
  local elsewhere = count > 1 or not offer.steps[vim.api.nvim_get_current_buf()]
  offers.finish(offer)
  report()
  M.clear()
  ask_soon()
  if elsewhere then
    say(files(count) .. " changed: :wall writes, :Mercury next undo reverts")
  end
end

-- Makes one edit, and puts the cursor on its end.
local function make_one(hunk)
  vim.api.nvim_win_set_cursor(0, offers.make(offer, hunk))
  offer.hunks = vim.tbl_filter(function(each)
    return each ~= hunk
  end, offer.hunks)
end

-- Makes all edits that are wanted, or none where one of them does not fit: first the one at the cursor, if there is one.
local function make_all(target)
  local problem = offers.load(offer, is_wanted)
  if problem then
    return drop(problem)
  end
  local unseen = target and out_of_sight() or {}
  if target then
    make_one(target)
  end
  for _, hunk in ipairs(wanted()) do
    offers.make(offer, hunk)
  end
  if offer.made > 0 then
    finish()
  end
  if #unseen > 0 then
    say(("changed out of sight too, at line %d: u reverts"):format(unseen[1].row + 1))
  end
end

-- The nearest edit, where the cursor is near it; else the cursor goes there, and nothing is made yet. A place is there
-- to be gone to, and that is all.
local function reached()
  local target = nearest()
  if target and target.range and is_near(target) and not offer.is_place then
    return target
  elseif target then
    jump(target)
  end
  if offer and offer.is_place then
    offer.made = offer.count
    report()
    M.clear()
  end
end

-- Whether there are edits of several files, some of which are in no window.
local function reaches_further()
  local hidden, files = false, {}
  for _, hunk in ipairs(wanted()) do
    files[hunk.buf] = true
    hidden = hidden or vim.fn.bufwinid(hunk.buf) == -1
  end
  return hidden and vim.tbl_count(files) > 1
end

-- Opens the list of all edits, to leave some out; true if there is an offer.
function M.preview()
  if not M.visible() then
    return false
  end
  local problem = offers.outdated(offer)
  if problem then
    drop(problem)
    return true
  end
  if offer.is_place then
    reached()
    return true
  end
  preview.open(offer, { make = make_all, jump = jump, closed = show })
  return true
end

-- Makes all edits. The first key only goes there where they are out of sight or away from the cursor, and lists them
-- where other files would change unseen.
function M.accept()
  if not M.visible() then
    return false
  elseif preview.is_open() then
    preview.make()
  elseif reaches_further() then
    M.preview()
  else
    local target = reached()
    if target then
      make_all(target)
    end
  end
  return true
end

function M.accept_one()
  if not M.visible() then
    return false
  end
  if preview.is_open() then
    preview.go()
    return true
  end
  local target = reached()
  if not target then
    return true
  end
  make_one(target)
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
  if offer.made > 0 then
    offers.finish(offer)
    report()
  elseif client then
    client:notify("mercury/didReject", { id = offer.id })
    local buf = vim.api.nvim_get_current_buf()
    rejected = { buf = buf, version = offers.version(buf) }
  end
  M.clear()
  return true
end

-- Takes back what was accepted last, in all files at once.
function M.undo()
  local title, count, changed_since = offers.undo()
  if #changed_since > 0 then
    table.sort(changed_since)
    local names = table.concat(changed_since, ", ")
    say(("not undone: %s changed or closed since; press u where it is open"):format(names), vim.log.levels.WARN)
  elseif count == 0 then
    say("there is no next edit to undo")
  else
    say(("undone: %s in %s"):format(title, files(count)))
  end
end

local group = vim.api.nvim_create_augroup("mercury.nextedit", {})
vim.api.nvim_create_autocmd({ "TextChanged", "InsertLeave" }, { group = group, callback = changed })
vim.api.nvim_create_autocmd({ "InsertEnter", "RecordingEnter" }, { group = group, callback = M.clear })
vim.api.nvim_create_autocmd({ "CursorMoved", "WinScrolled", "BufEnter" }, {
  group = group,
  callback = moved,
})

return M
