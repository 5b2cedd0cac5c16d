-- A page: lines in a float that fits the screen, closed with q.
local M = {}

local function height_of(lines, width)
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / width))
  end
  return height
end

local function layout(title, lines)
  local width = vim.fn.strdisplaywidth(title) + 2
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  width = math.max(1, math.min(width, vim.o.columns - 4))
  local room = vim.o.lines - vim.o.cmdheight - 3
  local height = math.max(1, math.min(height_of(lines, width), room))
  return {
    relative = "editor",
    width = width,
    height = height,
    row = math.max(0, math.floor((room - height) / 2)),
    col = math.floor((vim.o.columns - width - 2) / 2),
    border = "rounded",
    style = "minimal",
    title = " " .. title .. " ",
  }
end

-- Opens a page and goes there; returns its buffer. Leaving its window closes it.
function M.open(title, lines, language)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].modifiable = false
  local win = vim.api.nvim_open_win(buf, true, layout(title, lines))
  vim.wo[win].linebreak = true
  if language then
    pcall(vim.treesitter.start, buf, language) -- this Neovim may lack the parser
  end
  local function close()
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_win_close(win, true)
    end
  end
  for _, key in ipairs({ "q", "<Esc>" }) do
    vim.keymap.set("n", key, close, { buffer = buf, nowait = true })
  end
  vim.api.nvim_create_autocmd("WinLeave", { buffer = buf, once = true, callback = vim.schedule_wrap(close) })
  return buf, close
end

return M
