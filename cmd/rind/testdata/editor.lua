-- Runs an editor page's snippet in a headless Neovim. In place of the plugin stands what takes the options of setup; the adapter that they hold is
-- then started as a job of this Neovim, and a session is held with it. SNIPPET is the file, WORKSPACE the folder.
local given
package.preload["codecompanion"] = function()
  return { setup = function(options) given = options end }
end
package.preload["codecompanion.adapters.acp.helpers"] = function()
  return { form_messages = function() end }
end

local function talk()
  dofile(vim.env.SNIPPET)
  local adapter = given.adapters.acp[given.interactions.chat.adapter]()
  assert(adapter.type == "acp" and adapter.handlers.setup(adapter), "the adapter does not set itself up")

  local answers, said, rest, job, code = {}, "", "", nil, nil
  local function send(message)
    message.jsonrpc = "2.0"
    vim.fn.chansend(job, vim.fn.json_encode(message) .. "\n")
  end
  local function hear(line)
    local m = vim.fn.json_decode(line)
    if m.method == "session/request_permission" then
      send({ id = m.id, result = { outcome = { outcome = "selected", optionId = m.params.options[1].optionId } } })
    elseif m.method == "session/update" then
      local u = m.params.update
      if u.sessionUpdate == "agent_message_chunk" then said = said .. u.content.text end
    elseif m.id ~= nil and m.method == nil then
      answers[m.id] = m
    end
  end
  job = vim.fn.jobstart(adapter.commands.default, {
    cwd = vim.env.WORKSPACE,
    on_stdout = function(_, data)
      data[1] = rest .. data[1]
      rest = table.remove(data)
      for _, line in ipairs(data) do hear(line) end
    end,
    on_exit = function(_, status) code = status end,
  })
  assert(job > 0, "the command does not start")
  local id = 0
  local function call(method, params)
    id = id + 1
    send({ id = id, method = method, params = params })
    assert(vim.wait(adapter.defaults.timeout, function() return answers[id] ~= nil end, 10), method .. " is not answered")
    assert(answers[id].error == nil, vim.fn.json_encode(answers[id]))
    return answers[id].result
  end
  local info = call("initialize", adapter.parameters)
  call("authenticate", { methodId = info.authMethods[1].id })
  local made = call("session/new", { cwd = vim.env.WORKSPACE, mcpServers = adapter.defaults.mcpServers })
  local ended = call("session/prompt", { sessionId = made.sessionId, prompt = { { type = "text", text = "work" } } })
  vim.fn.chanclose(job, "stdin")
  assert(vim.wait(adapter.defaults.timeout, function() return code ~= nil end, 10), "it does not end with its input")
  return ended.stopReason .. "|" .. said .. "|" .. code
end

local ok, result = pcall(talk)
io.stdout:write(tostring(result) .. "\n")
vim.cmd(ok and "qall!" or "cquit 1")
