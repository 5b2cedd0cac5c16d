-- What the user is told: one line that fits above the command line, so that Neovim never asks to press ENTER.
local M = {}

local MORE = " … :Mercury status"
local MOST_KEPT = 20
local MOMENT_MS = 50

M.kept = {} ---@type string[] in full what did not fit, the newest last; `:Mercury status` shows it

local waiting = {} ---@type { text: string, level: integer, order: integer }[]

-- The beginning of a text that fits into a number of screen cells.
local function beginning(text, cells)
  while vim.fn.strdisplaywidth(text) > cells do
    text = vim.fn.strcharpart(text, 0, vim.fn.strchars(text) - 1)
  end
  return vim.trim(text)
end

local function keep(text)
  table.insert(M.kept, text)
  if #M.kept > MOST_KEPT then
    table.remove(M.kept, 1)
  end
end

local function fitting(text, texts)
  local room = vim.v.echospace
  if not text:find("\n") and vim.fn.strdisplaywidth(text) <= room then
    return text
  end
  vim.tbl_map(keep, texts)
  return beginning(text:match("^[^\n]*"), room - vim.fn.strdisplaywidth(MORE)) .. MORE
end

-- In insert mode Neovim draws the mode over any message at once; it does not while 'showmode' is off.
local function uncover()
  if not vim.o.showmode or not vim.api.nvim_get_mode().mode:match("^[iR]") then
    return
  end
  vim.o.showmode = false
  vim.api.nvim_create_autocmd("ModeChanged", {
    pattern = "*:n*", -- CTRL-C triggers no InsertLeave
    once = true,
    callback = function()
      vim.o.showmode = true
    end,
  })
end

-- Messages of one moment share a line, the gravest first: two lines would be one too many.
local function tell()
  table.sort(waiting, function(one, other)
    return one.level > other.level or one.level == other.level and one.order < other.order
  end)
  local texts, level = {}, waiting[1].level
  for _, each in ipairs(waiting) do
    if not vim.list_contains(texts, each.text) then
      table.insert(texts, each.text)
    end
  end
  waiting = {}
  uncover()
  vim.notify(fitting("mercury: " .. table.concat(texts, "; "), texts), level)
end

-- Calls once Neovim has started.
function M.after_start(call)
  if vim.v.vim_did_enter == 1 then
    call()
  else
    vim.api.nvim_create_autocmd("VimEnter", { once = true, callback = call })
  end
end

-- Messages of a starting Neovim wait until it has started: with those of the files that it opens, they would scroll.
function M.say(text, level)
  table.insert(waiting, { text = text, level = level or vim.log.levels.INFO, order = #waiting })
  if #waiting == 1 then
    M.after_start(function()
      vim.defer_fn(tell, MOMENT_MS)
    end)
  end
end

return M
