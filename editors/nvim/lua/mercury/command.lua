-- `:Mercury` and its subcommands.
local client_of = require("mercury.client")
local page = require("mercury.page")
local quiet = require("mercury.quiet")
local saying = require("mercury.say")

local M = {}

local say = saying.say

local NO_SERVER = "no server in this buffer; see :checkhealth mercury"

local function server()
  return client_of.all(vim.api.nvim_get_current_buf())[1]
end

-- Asks our server of this buffer; says so where there is none.
local function ask(method, params, told)
  local client = server()
  if not client then
    return say(NO_SERVER, vim.log.levels.WARN)
  end
  client:request(method, params, function(err, result)
    if err then
      say(("%s: %s"):format(method, err.message), vim.log.levels.ERROR)
    else
      told(result)
    end
  end)
end

local function counted(row)
  return ("* %s, %s: %d shown, %d typed through, %d accepted, %d rejected, %d characters"):format(
    row.language,
    row.kind == "nextEdit" and "next edits" or "inline",
    row.shown,
    row.typedThrough,
    row.accepted,
    row.rejected,
    row.characters
  )
end

local function section(lines, title, items)
  if #items > 0 then
    vim.list_extend(lines, { "", "## " .. title, "" })
    vim.list_extend(lines, items)
  end
end

local function bullets(texts)
  return vim.tbl_map(function(text)
    return "* " .. text:gsub("\n%s*", " ")
  end, texts or {})
end

local function described(status)
  local engine = vim.tbl_filter(function(word)
    return type(word) == "string" and word ~= ""
  end, { status.engine, status.model, status.device, status.detail })
  local lines = {
    ("%s · %s"):format(status.state, table.concat(engine, " · ")),
    ("version %s, %d %s open, %d accepted, %d rejected"):format(
      status.version,
      status.documents,
      status.documents == 1 and "document" or "documents",
      status.accepted,
      status.rejected
    ),
  }
  vim.list_extend(lines, status.remarks or {})
  if (status.sent or "") ~= "" then
    table.insert(lines, "sent last: " .. status.sent)
  end
  if status.snoozed then
    table.insert(lines, "snoozed: `:Mercury snooze 0` ends it")
  end
  section(lines, "Today", vim.tbl_map(counted, status.today or {}))
  section(lines, "Problems", bullets(status.problems))
  section(lines, "Last decisions, newest first", bullets(vim.iter(status.decisions):rev():totable()))
  return lines
end

local function show_status(lines, problems)
  vim.list_extend(lines, { quiet.switched_off(vim.api.nvim_get_current_buf()) })
  local messages = vim.tbl_filter(function(text)
    return not vim.list_contains(problems, text)
  end, saying.kept)
  section(lines, "Messages", bullets(messages))
  page.open("mercury: status", lines, "markdown")
end

function M.snooze(minutes)
  minutes = minutes or 5
  for _, client in ipairs(client_of.all()) do
    client:request("mercury/snooze", { minutes = minutes }, function() end)
  end
  client_of.hide()
  require("mercury.status").snooze(minutes)
  say(minutes > 0 and ("no suggestions for %g minutes"):format(minutes) or "suggestions are on again")
end

-- Switches suggestions off or on again, in all buffers or in those of one language.
function M.toggle(language)
  local on = quiet.toggle(language)
  client_of.hide()
  require("mercury.status").announce()
  say(("suggestions are %s%s"):format(on and "on" or "off", language and " for " .. language or ""))
end

local commands = {}

function commands.status()
  if not server() then
    return show_status({ NO_SERVER }, {})
  end
  ask("mercury/status", vim.empty_dict(), function(status)
    show_status(described(status), status.problems)
  end)
end

function commands.stats()
  ask("mercury/stats", vim.empty_dict(), function(stats)
    page.open("mercury: stats", vim.split(vim.trim(stats.plain or stats.page), "\n"))
  end)
end

function commands.snooze(minutes)
  local number = tonumber(minutes or 5)
  if not number or number < 0 then
    return say(("snooze %s: give a number of minutes, or 0 to resume"):format(minutes), vim.log.levels.ERROR)
  end
  M.snooze(number)
end

commands.toggle = M.toggle

-- The cursor's place; on leaving insert mode the cursor goes back by one character, so then where it was typing. The
-- second value tells whether something was typed here last.
local function place(encoding)
  local params = vim.lsp.util.make_position_params(0, encoding)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local typed_row, typed_col = unpack(vim.api.nvim_buf_get_mark(0, "^"))
  local between = typed_row == row and vim.api.nvim_get_current_line():sub(col + 1, typed_col)
  local is_left = between and vim.fn.strchars(between) <= 1 and typed_col >= col
  if is_left and between ~= "" and vim.api.nvim_get_mode().mode == "n" then
    params.position.character = params.position.character + vim.str_utfindex(between, encoding)
  end
  return params, is_left
end

local function here()
  local buf = vim.api.nvim_get_current_buf()
  return { buf, vim.api.nvim_buf_get_changedtick(buf), vim.api.nvim_win_get_cursor(0) }
end

-- What the user waits for: the next edit, and ghost text first in insert mode, last where that was just left. Who has
-- moved on before it is known is told in the last line.
function commands.why()
  local asked = here()
  local client = server()
  local types = vim.api.nvim_get_mode().mode:find("i", 1, true) ~= nil
  local params, is_left = place(client and client.offset_encoding or "utf-16")
  ask("mercury/why", params, function(answer)
    local silenced = quiet.reason(asked[1])
    local lines =
      { "next edit: " .. (silenced or require("mercury.nextedit").reason() or answer.nextEdit or "no reason given") }
    if types or is_left then
      table.insert(lines, types and 1 or 2, "inline: " .. (silenced or answer.reason))
    end
    if types and (answer.model or "") ~= "" then
      table.insert(lines, answer.model)
    end
    if vim.deep_equal(asked, here()) then
      page.open("mercury: why", lines)
    else
      say(lines[1])
    end
  end)
end

local nexts = {}

function nexts.accept()
  if not require("mercury").next_edit() then
    require("mercury.nextedit").ask()
  end
end

function nexts.one()
  if not require("mercury").next_edit_one() then
    say("there is no next edit")
  end
end

function nexts.preview()
  if not require("mercury").preview() then
    say("there is no next edit")
  end
end

function nexts.undo()
  require("mercury").undo()
end

local function run(choices, chosen, ...)
  if choices[chosen] then
    choices[chosen](...)
  else
    say(("%s: no such command; <Tab> completes the names"):format(chosen), vim.log.levels.ERROR)
  end
end

commands["next"] = function(what)
  run(nexts, what or "accept")
end

function commands.accept()
  local mercury = require("mercury")
  if not mercury.accept() and not mercury.next_edit() then
    say("there is no suggestion")
  end
end

function commands.dismiss()
  require("mercury").dismiss()
end

function commands.restart()
  client_of.restart()
end

function commands.install()
  require("mercury.install").run()
end

function commands.sample()
  require("mercury.welcome").sample()
end

-- What the server says on standard error is in Neovim's own log of language servers.
function commands.log()
  local path = vim.lsp.log.get_filename and vim.lsp.log.get_filename() or vim.lsp.get_log_path()
  vim.cmd.tabedit(vim.fn.fnameescape(path))
  vim.cmd("normal! G")
end

M.names = vim.tbl_keys(commands)
table.sort(M.names)

function M.run(arguments)
  run(commands, arguments[1] or "status", unpack(arguments, 2))
end

local function languages()
  local found = {}
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    found[vim.bo[buf].filetype] = true
  end
  found[""] = nil
  return vim.tbl_keys(found)
end

local arguments = {
  snooze = function()
    return { "5", "30", "60", "0" }
  end,
  toggle = languages,
  next = function()
    return vim.tbl_keys(nexts)
  end,
}

function M.complete(typed, line)
  local before = vim.split(line, "%s+")
  local choices = #before <= 2 and M.names or arguments[before[2]] and arguments[before[2]]() or {}
  if before[2] ~= "snooze" then
    table.sort(choices)
  end
  return vim.tbl_filter(function(choice)
    return vim.startswith(choice, typed)
  end, choices)
end

return M
