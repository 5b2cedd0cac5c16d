-- What is there as soon as the plugin is: the command, the <Plug> mappings and the colours. No key is taken.
if vim.g.loaded_mercury then
  return
end
vim.g.loaded_mercury = true

if vim.fn.has("nvim-0.11") == 0 then
  vim.notify("mercury: Neovim 0.11 or newer is needed", vim.log.levels.ERROR)
  return
end

local function map(modes, name, call)
  vim.keymap.set(modes, ("<Plug>(mercury-%s)"):format(name), ("<Cmd>lua require('mercury').%s()<CR>"):format(call))
end

map("i", "accept", "accept")
map("i", "accept-word", "accept_word")
map("i", "accept-line", "accept_line")
map("i", "next", "next")
map("i", "prev", "prev")
map("i", "suggest", "suggest")
map({ "i", "n" }, "dismiss", "dismiss")
map("n", "next-edit", "next_edit")
map("n", "next-edit-one", "next_edit_one")
map("n", "preview", "preview")

local DARK_GREY = 8

local function style_of(group)
  return vim.api.nvim_get_hl(0, { name = group, link = false })
end

-- Many colour schemes have no grey for terminals without true colours, and none strikes out what a diff deletes.
local function colours()
  local grey = vim.fn.hlexists("ComplHint") == 1 and "ComplHint" or "Comment"
  local struck = { strikethrough = true, cterm = { strikethrough = true } }
  local styles = {
    MercuryGhost = vim.tbl_extend("keep", style_of(grey), { ctermfg = DARK_GREY }),
    MercuryAdd = { link = "DiffAdd" },
    MercuryDelete = vim.tbl_deep_extend("force", style_of("DiffDelete"), struck),
    MercuryHint = { link = "DiagnosticHint" },
  }
  for group, style in pairs(styles) do
    style.default = true
    vim.api.nvim_set_hl(0, group, style)
  end
end

colours()

vim.api.nvim_create_user_command("Mercury", function(given)
  require("mercury.command").run(given.fargs)
end, {
  nargs = "*",
  desc = "mercury: status, stats, why, next, toggle, snooze, sample, restart and more",
  complete = function(typed, line)
    return require("mercury.command").complete(typed, line)
  end,
})

local group = vim.api.nvim_create_augroup("mercury", {})
local function on(events, callback)
  vim.api.nvim_create_autocmd(events, { group = group, callback = callback })
end

on("ColorScheme", colours)
on("LspAttach", function(event)
  require("mercury.client").attached(event.data.client_id, event.buf)
end)
on("LspDetach", function(event)
  require("mercury.client").detached(event.data.client_id, event.buf)
end)
on("DiagnosticChanged", function(event)
  require("mercury.diagnostics").changed(event.buf)
end)
