-- `:Mercury install`: installs or updates the server, once its exact command was shown and agreed to.
local saying = require("mercury.say")

local M = {}

-- The package's name on PyPI, once it is there; until then somebody else may have taken it.
M.package = ""

local DETAIL = "\n\nIt downloads about 90 MB of packages, and takes half a gigabyte in a folder of its own in your home.\nRun it?"

-- The commands of what can install here, best first, one after the other: for the server, and for the model that a
-- clone has beside it.
function M.commands(requirement)
  local folder = vim.fs.joinpath(requirement, "models", "quicksilver")
  local model = vim.uv.fs_stat(folder) and folder or nil
  local installers = {
    { { "uv", "tool", "install", "--force", requirement, model and "--with", model } },
    { { "pipx", "install", "--force", requirement }, model and { "pipx", "inject", "--force", "mercury-ls", model } },
    { { "python3", "-m", "pip", "install", "--upgrade", requirement, model } },
  }
  for _, commands in ipairs(installers) do
    if vim.fn.executable(commands[1][1]) == 1 then
      return commands
    end
  end
end

-- The clone that this plugin lies in, if it lies in one.
local function clone()
  local file = vim.api.nvim_get_runtime_file("lua/mercury/install.lua", false)[1]
  local root = vim.fs.normalize(vim.fn.fnamemodify(file, ":p:h:h:h:h:h"))
  return vim.uv.fs_stat(vim.fs.joinpath(root, "mercury_ls", "__init__.py")) and root or nil
end

local function source()
  if M.package ~= "" then
    return M.package
  end
  return clone() or vim.fn.input({ prompt = "mercury: the clone of mercury-ls: ", completion = "dir" })
end

local function run(commands)
  local command = table.remove(commands, 1)
  if not command then
    saying.say("the server is installed")
    return require("mercury.client").restart()
  end
  vim.system(command, { text = true }, vim.schedule_wrap(function(result)
    if result.code == 0 then
      return run(commands)
    end
    local output = vim.trim((result.stdout or "") .. (result.stderr or ""))
    saying.say(("%s ended with %d\n%s"):format(command[1], result.code, output), vim.log.levels.ERROR)
  end))
end

function M.run()
  local requirement = source()
  if requirement == "" then
    return saying.say("nothing is installed: no folder was named")
  end
  local commands = M.commands(requirement)
  if not commands then
    return saying.say("install uv, pipx or Python first: none of them is found", vim.log.levels.ERROR)
  end
  local shown = vim.iter(commands):map(function(command)
    return table.concat(command, " ")
  end)
  if vim.fn.confirm(shown:join("\n") .. DETAIL, "&Run\n&No", 2) ~= 1 then
    return saying.say("nothing is installed")
  end
  saying.say(("%s is installing the server"):format(commands[1][1]))
  run(commands)
end

return M
