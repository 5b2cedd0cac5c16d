-- `:Mercury install`: installs or updates the server, once its exact command was shown and agreed to.
local saying = require("mercury.say")

local M = {}

-- The package's name on PyPI, once it is there; until then somebody else may have taken it.
M.package = ""

local DETAIL = "\n\nIt downloads packages into a folder of its own in your home. Run it?"

-- What can install here, best first, with its command.
function M.command(requirement)
  local installers = {
    { "uv", "tool", "install", "--force", requirement },
    { "pipx", "install", "--force", requirement },
    { "python3", "-m", "pip", "install", "--upgrade", requirement },
  }
  for _, command in ipairs(installers) do
    if vim.fn.executable(command[1]) == 1 then
      return command
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

local function finished(command, result)
  if result.code == 0 then
    saying.say("the server is installed")
    return require("mercury.client").restart()
  end
  local output = vim.trim((result.stdout or "") .. (result.stderr or ""))
  saying.say(("%s ended with %d\n%s"):format(command[1], result.code, output), vim.log.levels.ERROR)
end

function M.run()
  local requirement = source()
  if requirement == "" then
    return saying.say("nothing is installed: no folder was named")
  end
  local command = M.command(requirement)
  if not command then
    return saying.say("install uv, pipx or Python first: none of them is found", vim.log.levels.ERROR)
  end
  if vim.fn.confirm(table.concat(command, " ") .. DETAIL, "&Run\n&No", 2) ~= 1 then
    return saying.say("nothing is installed")
  end
  saying.say(("%s is installing the server"):format(command[1]))
  vim.system(command, { text = true }, vim.schedule_wrap(function(result)
    finished(command, result)
  end))
end

return M
