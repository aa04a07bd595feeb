-- Ends the connections of a shoot whose kube-apiserver has lost etcd, as in a fenced seed (docs/understand/decisions/0038).
--
-- Such a kube-apiserver answers reads and watches from caches until the kubelet ends it. These checks need HAProxy and the
-- network between HAProxy and kube-apiserver: no kubelet, no API server of the seed, no gardenlet and no DNS.

-- HAProxy's own command socket, and `listen checks` of haproxy.cfg.
local COMMANDS, CHECKS = "abns@edge-commands", "abns@edge-checks"
-- Seconds between two checks of a kube-apiserver, and the failures in a row that end its connections. Three pauses are 15 s:
-- longer than a permit (12 s) and the 3 s for which kube-apiserver may report a failure of etcd that has ended.
local PERIOD, FAILURES = 5, 4
-- Servers of `backend shoot` and `backend shoot-tried`, by which HAProxy finds the connections of a shoot.
local BACKENDS, SERVERS = { "shoot", "shoot-tried" }, 1000
-- The most checks at the same time. In a fenced seed each takes 2 s, and 500 are enough for 1250 shoots.
local WORKERS = 500
-- Milliseconds until an idle task reads the list of checks again. HAProxy 2.6 cannot wake a task of Lua.
local IDLE = 200

-- By address: failures in a row, time of the next check, whether a check waits or is under way, and number of the server.
local failures, due, running, numbers = {}, {}, {}, {}
-- Address by number of the server.
local addresses = {}
-- Addresses to check, tasks for checks, and those of them without a check.
local waiting, workers, idle = {}, 0, 0

-- Gives each address a server of its own. All servers are the same to HAProxy: `set-dst` leads each connection to its shoot.
-- Beyond that number of shoots several shoots share a server, and the connections of all end together.
core.register_converters("server_of_address", function(address)
  local number = numbers[address]
  for free = 1, number and 0 or SERVERS do
    if not addresses[free] then
      number, numbers[address], addresses[free] = free, free, address
      break
    end
  end
  return "kube-apiserver" .. (number or SERVERS)
end)

-- Sends a request, and gives the answer up to the first empty line. `listen checks` sends a head all at once, and HAProxy
-- closes a socket that gets nothing for 10 s, so that kube-apiserver cannot draw the answer out.
local function ask(listener, text)
  local socket, lines = core.tcp(), {}
  socket:settimeout(10)
  if socket:connect(listener) then
    socket:send(text)
    repeat
      local line = socket:receive("*l")
      table.insert(lines, line)
    until not line or line == ""
  end
  socket:close()
  return table.concat(lines, "\n")
end

local function command(text)
  ask(COMMANDS, text .. "\n")
end

-- Connections by address, also 0 for a minute after the last connection.
local function connections()
  local found = {}
  for address, entry in pairs(core.proxies.served.stktable:dump()) do
    found[address] = entry.conn_cur
  end
  return found
end

local function end_connections(address)
  local count = connections()[address] or 0
  if count > 0 then
    for _, backend in ipairs(BACKENDS) do
      command(("shutdown sessions server %s/kube-apiserver%d"):format(backend, numbers[address] or SERVERS))
    end
    core.log(core.warning, ("ended %d connections to %s: its kube-apiserver has lost etcd"):format(count, address))
  end
end

-- A missing answer is no report of a lost etcd, so that a slow kube-apiserver keeps its connections. After such a report a
-- missing answer counts as well, unless no connection is left: HAProxy is busy while it connects where the node refuses. For a
-- missing answer `listen checks` answers with an error. Without that error the check has not left HAProxy, and changes nothing.
local function check(address)
  local answer = ask(CHECKS, ("GET / HTTP/1.1\r\nhost: %s\r\nconnection: close\r\n\r\n"):format(address))
  local before = failures[address] or 0
  if answer:find("^HTTP/1.1 200 ") then
    failures[address] = nil
    if before >= FAILURES then
      command(("set table served key %s data.gpc0_rate 0"):format(address))
    end
  elseif answer == "" then
    return
  elseif answer:find("\nlost-etcd: 1", 1, true) or (before > 0 and (connections()[address] or 0) > 0) then
    failures[address] = before + 1
    if before + 1 >= FAILURES then
      command(("set table served key %s data.gpc0_rate 1"):format(address))
      end_connections(address)
    end
  else
    failures[address] = nil
  end
end

-- HAProxy 2.6 never frees the function of a task. So the tasks go on for good, and their number is bounded.
local function work()
  while true do
    local address = table.remove(waiting, 1)
    if address then
      local done, why = pcall(check, address)
      running[address] = nil
      if not done then
        core.log(core.err, ("could not check kube-apiserver at %s: %s"):format(address, why))
      end
    else
      idle = idle + 1
      core.msleep(IDLE)
      idle = idle - 1
    end
  end
end

local function start_checks()
  local now, found = core.now().sec, connections()
  for address in pairs(due) do
    if not found[address] then
      addresses[numbers[address] or 0] = nil
      due[address], failures[address], numbers[address] = nil, nil, nil
    end
  end
  for address, count in pairs(found) do
    -- Spread over the period: after a start of the edge all shoots come at once.
    due[address] = due[address] or now + math.random(0, PERIOD - 1)
    if now >= due[address] and not running[address] and (count > 0 or failures[address]) then
      due[address], running[address] = now + PERIOD, true
      table.insert(waiting, address)
    end
  end
  for _ = 1, math.min(#waiting - idle, WORKERS - workers) do
    workers = workers + 1
    core.register_task(work)
  end
end

core.register_task(function()
  while true do
    local done, why = pcall(start_checks)
    if not done then
      core.log(core.err, "could not start checks of kube-apiservers: " .. tostring(why))
    end
    core.sleep(1)
  end
end)
