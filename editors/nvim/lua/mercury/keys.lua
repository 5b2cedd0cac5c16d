-- The keys of `setup({ keys = true })`: each acts where it has something to act on, and is what it was otherwise.
local M = {}

M.defaults = {
  { "i", "<Tab>", "accept" },
  { "i", "<C-Right>", "accept_word" },
  { "i", "<C-Down>", "accept_line" },
  { "i", "<M-]>", "next" },
  { "i", "<M-[>", "prev" },
  { "i", "<C-]>", "dismiss" },
  { "n", "<Tab>", "next_edit" },
  { "n", "<S-Tab>", "next_edit_one" },
  { "n", "<M-p>", "preview" },
  { "n", "<Esc>", "dismiss" },
}

M.actions = setmetatable({}, { __mode = "k" }) ---@type table<function, string> what each function of or_key() does

local MODES = { i = "insert", n = "normal" }

local before = {} ---@type table<string, string> what keys were mapped to, by mode and key

-- The action of a mapping, as |nvim_get_keymap()| has it; nil where it is none of ours.
local function action_of(mapping)
  local rhs = mapping.rhs or ""
  local named = rhs:match("^<Plug>%(mercury%-(.*)%)$") or rhs:match("require%(?['\"]mercury['\"]%)?%.([%w_]+)%(")
  return mapping.callback and M.actions[mapping.callback] or named and named:gsub("-", "_") or nil
end

-- A mapping of a key, for every buffer or for one.
local function mapping_of(mode, key, buf)
  local raw = vim.keycode(key)
  for _, each in ipairs(buf and vim.api.nvim_buf_get_keymap(buf, mode) or vim.api.nvim_get_keymap(mode)) do
    if each.lhsraw == raw or each.lhsrawalt == raw then
      return each
    end
  end
end

local function described(mapping)
  return mapping.desc or mapping.rhs or "a function"
end

-- Gives what a key is mapped to, or the key itself, a name that it keeps.
local function keep(mode, key, name)
  local was = mapping_of(mode, key)
  if not was then
    vim.keymap.set(mode, name, key)
    return
  end
  before[mode .. key] = described(was)
  vim.fn.mapset(mode, false, vim.tbl_extend("force", was, { lhs = name, lhsraw = vim.keycode(name), lhsrawalt = "" }))
end

function M.map(mercury)
  for _, default in ipairs(M.defaults) do
    local mode, key, action = unpack(default)
    local was = mapping_of(mode, key)
    if not (was and action_of(was)) then
      local name = ("<Plug>(mercury-else-%s)"):format(key:gsub("[<>]", ""))
      keep(mode, key, name)
      local options = { expr = true, remap = true, desc = "mercury: " .. action }
      vim.keymap.set(mode, key, mercury.or_key(action, name), options)
    end
  end
end

-- The key that an action is mapped to, by whomever; nil without one.
function M.key_of(mode, action)
  for _, each in ipairs(vim.api.nvim_get_keymap(mode)) do
    if not vim.startswith(each.lhs, "<Plug>") and action_of(each) == action then
      return vim.fn.keytrans(each.lhsraw or each.lhs)
    end
  end
end

-- For each of the default keys: what it does, and what else wants it.
function M.report()
  local lines = {}
  for _, default in ipairs(M.defaults) do
    local mode, key, action = unpack(default)
    local now = mapping_of(mode, key)
    local line = { text = ("%s %s: %s"):format(MODES[mode], key, action), ok = true }
    if not now or action_of(now) ~= action then
      line.text = ("%s, but it was mapped again: %s"):format(line.text, now and described(now) or "to itself")
      line.ok = false
    elseif before[mode .. key] then
      line.text = ("%s; where there is nothing to act on: %s"):format(line.text, before[mode .. key])
    end
    table.insert(lines, line)
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      local own = vim.bo[buf].buflisted and mapping_of(mode, key, buf)
      if own then
        local name = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ":t")
        table.insert(lines, { text = ("%s %s is hidden in %s by: %s"):format(MODES[mode], key, name, described(own)) })
      end
    end
  end
  return lines
end

return M
