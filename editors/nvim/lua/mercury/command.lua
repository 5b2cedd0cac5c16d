-- `:Mercury` and its subcommands.
local client_of = require("mercury.client")

local M = {}

local function say(text, level)
  vim.notify("mercury: " .. text, level or vim.log.levels.INFO)
end

-- Asks our server of this buffer; says so where there is none.
local function ask(method, params, told)
  local client = client_of.all(vim.api.nvim_get_current_buf())[1]
  if not client then
    return say("no server is attached to this buffer; see :checkhealth mercury", vim.log.levels.WARN)
  end
  client:request(method, params, function(err, result)
    if err then
      say(("%s: %s"):format(method, err.message), vim.log.levels.ERROR)
    else
      told(result)
    end
  end)
end

local function described(status)
  local engine = vim.tbl_filter(function(word)
    return type(word) == "string" and word ~= ""
  end, { status.engine, status.model, status.device, status.detail })
  local lines = {
    ("%s · %s"):format(status.state, table.concat(engine, " · ")),
    ("version %s, %d documents open"):format(status.version, status.documents),
    ("%d accepted, %d refused"):format(status.accepted, status.rejected),
  }
  if status.snoozed then
    table.insert(lines, "snoozed: `:Mercury snooze 0` wakes it")
  end
  vim.list_extend(lines, status.problems)
  return vim.list_extend(lines, vim.list_slice(status.decisions, math.max(1, #status.decisions - 4)))
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

local commands = {}

function commands.status()
  ask("mercury/status", vim.empty_dict(), function(status)
    say(table.concat(described(status), "\n"))
  end)
end

function commands.snooze(minutes)
  local number = tonumber(minutes or 5)
  if not number or number < 0 then
    return say(("snooze %s: give a number of minutes, or 0 to wake"):format(minutes), vim.log.levels.ERROR)
  end
  M.snooze(number)
end

function commands.why()
  local client = client_of.all(vim.api.nvim_get_current_buf())[1]
  local encoding = client and client.offset_encoding or "utf-16"
  ask("mercury/why", vim.lsp.util.make_position_params(0, encoding), function(answer)
    say(require("mercury.quiet").reason(vim.api.nvim_get_current_buf()) or answer.reason)
  end)
end

function commands.accept()
  local mercury = require("mercury")
  if not mercury.accept() and not mercury.next_edit() then
    say("nothing is suggested")
  end
end

function commands.dismiss()
  require("mercury").dismiss()
end

function commands.restart()
  client_of.restart()
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
  local run = commands[arguments[1]]
  if not run then
    return say(("%s: the commands are %s"):format(arguments[1], table.concat(M.names, ", ")), vim.log.levels.ERROR)
  end
  run(unpack(arguments, 2))
end

function M.complete(typed, line)
  local before = vim.split(line, "%s+")
  local choices = #before <= 2 and M.names or before[2] == "snooze" and { "5", "30", "60", "0" } or {}
  return vim.tbl_filter(function(choice)
    return vim.startswith(choice, typed)
  end, choices)
end

return M
