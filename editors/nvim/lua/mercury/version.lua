-- The version of this plugin, and whether a server is too old for it.
local M = {}

M.plugin = "0.1.0"

local function numbers(version)
  local major, minor = version:match("^(%d+)%.(%d+)")
  return tonumber(major), tonumber(minor)
end

-- Where the first two numbers differ, something has changed that both must know.
function M.is_older(version, other)
  local major, minor = numbers(version)
  local other_major, other_minor = numbers(other)
  if not (major and other_major) then
    return false
  end
  return major < other_major or major == other_major and minor < other_minor
end

-- What to say of a server that is older than this plugin; a newer one speaks for itself.
function M.complaint(info)
  local server = info and info.version
  if type(server) ~= "string" or not M.is_older(server, M.plugin) then
    return
  end
  return ("the server is %s, and this plugin %s: update the server with `:Mercury install`"):format(server, M.plugin)
end

return M
