-- Runs the access function of our Kong snippet with a stand-in for what it uses of Kong; resty.http is LuaSocket here.
-- usage: lua5.1 kong_stub.lua ACCESS.lua BODY.json TARGET [name=value…]; prints the status, headers and body of the verdict.
local socket_http, ltn12 = require("socket.http"), require("ltn12")

local function body()
  local file = assert(io.open(arg[2], "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local asked = { ["content-type"] = "application/json", host = "api.example.com", ["content-length"] = "1" }
for index = 4, #arg do
  local name, value = arg[index]:match("^([^=]+)=(.*)$")
  asked[name] = value
end

local answered, told = 200, {}
local exited

kong = {
  request = {
    get_headers = function() return asked end,
    get_method = function() return "POST" end,
    get_path_with_query = function() return arg[3] end,
    get_host = function() return "api.example.com" end,
    get_raw_body = body,
  },
  response = {
    set_header = function(name, value) told[name] = value end,
    exit = function(status, text, headers) answered, exited, told = status, text, headers end,
  },
}

package.preload["resty.http"] = function()
  local client = {}
  function client:set_timeouts(_, _, read) socket_http.TIMEOUT = read / 1000 end
  function client:request_uri(url, options)
    local chunks, headers = {}, {}
    for name, value in pairs(options.headers) do headers[name] = value end
    headers["content-length"] = #options.body
    local done, status, answer = socket_http.request({
      url = url, method = options.method, headers = headers,
      source = ltn12.source.string(options.body), sink = ltn12.sink.table(chunks),
    })
    if not done then return nil, status end
    return { status = status, headers = answer, body = table.concat(chunks) }
  end
  return { new = function() return client end }
end

assert(loadfile(arg[1]))()

print(answered)
for name, value in pairs(told) do print(name .. "=" .. value) end
print()
io.write(exited or "")
