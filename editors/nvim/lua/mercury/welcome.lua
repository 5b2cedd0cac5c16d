-- For those who are new: which key takes ghost text, said once in the life of an installation, and a sample to try.
local M = {}

-- Once a blank is typed, its last line is completed, and so is one for the price below it.
local SAMPLE = [[
class Parcel:
    def __init__(self, width, height, depth, weight, price):
        self.width = width
        self.height = height
        self.depth = depth
        self.weight =]]

local explained = false

local function folder()
  return vim.fs.joinpath(vim.fn.stdpath("state"), "mercury")
end

local function first_time()
  local path = vim.fs.joinpath(folder(), "welcomed")
  if explained or vim.uv.fs_stat(path) then
    return false
  end
  pcall(vim.fn.mkdir, folder(), "p")
  pcall(vim.fn.writefile, {}, path)
  return true
end

-- The first suggestion ever shown comes with a hint at the key that accepts it.
function M.explain()
  local first = not explained and first_time()
  explained = true
  if first then
    local key = require("mercury.keys").key_of("i", "accept")
    local how = key and key .. " accepts the grey text" or "no key accepts the grey text yet: `:help mercury-keys`"
    require("mercury.say").say(how .. " · `:Mercury sample` to try")
  end
end

-- A file to type in, which is never written.
function M.sample()
  local path = vim.fs.joinpath(folder(), "sample.py")
  for _, earlier in ipairs(vim.api.nvim_list_bufs()) do
    -- Vim's own commands take a name with brackets for a pattern.
    if vim.fs.normalize(vim.api.nvim_buf_get_name(earlier)) == vim.fs.normalize(path) then
      vim.api.nvim_buf_delete(earlier, { force = true })
    end
  end
  local buf = vim.api.nvim_create_buf(true, false)
  vim.api.nvim_buf_set_name(buf, path)
  vim.bo[buf].swapfile, vim.bo[buf].undolevels = false, -1
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(SAMPLE, "\n"))
  vim.bo[buf].undolevels, vim.bo[buf].modified = vim.go.undolevels, false
  vim.bo[buf].bufhidden = "wipe"
  vim.api.nvim_create_autocmd({ "BufModifiedSet", "BufWriteCmd" }, {
    buffer = buf,
    callback = function()
      vim.bo[buf].modified = false
    end,
  })
  vim.cmd("tab sbuffer " .. buf)
  vim.bo[buf].filetype = "python"
  vim.cmd("normal! G$")
  vim.cmd("startinsert!")
end

return M
