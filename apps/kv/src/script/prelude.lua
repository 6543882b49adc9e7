-- Makes the globals of scripts out of Lua's own. Whatever a script can reach of what scripts share
-- is behind a shield, an empty table that shows another one and cannot be changed.

local native, env, base, libraries, fix, fatal, placed = ...

local error, next, rawset, setmetatable = native.error, native.next, native.rawset, native.setmetatable
local pcall, xpcall, resume = native.pcall, native.xpcall, native.coroutine.resume
local shields = {}

local function readonly()
  error("Attempt to modify a readonly table", 2)
end

local function shield(shown, shield)
  shields[shield] = { __index = shown, __newindex = readonly, __metatable = false }
  return setmetatable(shield, shields[shield])
end

local missing = {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. native.tostring(name) .. "'", 2)
  end,
}
setmetatable(base, missing)
shield(base, env)
-- Seen, and as fixed as the rest.
shields[env].__metatable = shield({}, {})
base._G = env

for _, name in native.ipairs({
  "_VERSION", "assert", "collectgarbage", "error", "gcinfo", "getmetatable", "ipairs", "next", "pairs",
  "rawequal", "rawget", "select", "tonumber", "tostring", "type", "unpack",
}) do
  base[name] = native[name]
end
for name, library in next, libraries do
  base[name] = shield(library, {})
end

local strings = native.getmetatable("")
strings.__metatable = shield({ __index = base.string }, {})

function base.setmetatable(table, meta)
  if shields[table] then
    error("Attempt to modify a readonly table", 0)
  end
  return setmetatable(table, meta)
end

function base.rawset(table, key, value)
  if shields[table] then
    error("Attempt to modify a readonly table", 0)
  end
  return rawset(table, key, value)
end

-- An end that a script cannot prevent passes through all that catches errors.
local function settled(text, ok, problem, ...)
  if ok then
    return true, problem, ...
  end
  if fatal(problem) then
    error(problem, 0)
  end
  return false, fix(problem, text)
end

function base.pcall(...)
  return settled(true, pcall(...))
end

function base.xpcall(f, handler)
  return settled(false, xpcall(f, function(problem)
    if fatal(problem) then
      return problem
    end
    return handler(fix(problem, false))
  end))
end

libraries.coroutine.resume = function(...)
  return settled(false, resume(...))
end

-- While a library is loaded there is another `redis` only, with the constants and little more.
local early_redis = setmetatable({}, missing)
local early = setmetatable({ redis = shield(early_redis, {}) }, missing)
for name, value in next, libraries.redis do
  if native.type(value) ~= "function" or name == "log" then
    early_redis[name] = value
  end
end

local function loading(register, too_late)
  early_redis.register_function = register or too_late
  shields[env].__index = register and early or base
end

-- Runs a script, and a function of a library with its two arguments.
return function(script)
  return xpcall(script, placed)
end, function(callback, keys, args)
  return xpcall(function()
    return callback(keys, args)
  end, placed)
end, loading
