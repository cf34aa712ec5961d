"""What is run inside the sister's containers: short Python and shell, standard library only.

Serving images hold Python; curl, ps and tar they may lack.
"""

from __future__ import annotations

RESULTS = "/solscope/results"
NOTES = f"{RESULTS}/.solscope"
COLLECTED = f"{RESULTS}/.collected"

ASK = """
import json, os, sys, urllib.error, urllib.request
method, url, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
body = sys.argv[4] if len(sys.argv) > 4 else ""
data = body.encode() if method == "POST" else None
request = urllib.request.Request(url, data, method=method)
if body:
    request.add_header("Content-Type", "application/json")
key = os.environ.get("VLLM_API_KEY") or os.environ.get("SGLANG_API_KEY")
if key:
    request.add_header("Authorization", "Bearer " + key)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    with opener.open(request, timeout=limit) as answer:
        told = {"status": answer.status, "body": answer.read(65536).decode("utf-8", "replace")}
except urllib.error.HTTPError as refusal:
    told = {"status": refusal.code, "body": refusal.read(4096).decode("utf-8", "replace")}
except OSError as error:
    told = {"status": None, "body": str(error)}
print(json.dumps(told))
"""
"""METHOD URL SECONDS [JSON] -> ``{"status", "body"}``; status ``null`` where nothing answers."""

LOAD = """
import json, os, random, sys, threading, time, urllib.error, urllib.request
told = json.loads(sys.argv[1])
base, folder = told["base"], told["folder"]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
headers = {"Content-Type": "application/json"}
key = os.environ.get("VLLM_API_KEY") or os.environ.get("SGLANG_API_KEY")
if key:
    headers["Authorization"] = "Bearer " + key
def ask(path, body=None, limit=60):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, headers)
    with opener.open(request, timeout=limit) as answer:
        return json.loads(answer.read())
def one(model, results):
    # Token ids, so that the length is exact; different ones, so that no prefix is cached.
    prompt = [random.randint(100, 2000) for _ in range(told["isl"])]
    body = {"model": model, "prompt": prompt, "max_tokens": told["osl"],
            "temperature": 0, "ignore_eos": True}
    try:
        usage = ask("/v1/completions", body, told["limit"]).get("usage") or {}
        results.append(usage.get("completion_tokens") or 0)
    except urllib.error.HTTPError as refusal:
        results.append("HTTP %d %s" % (refusal.code, refusal.read(300).decode("utf-8", "replace")))
    except (OSError, ValueError) as error:
        results.append(str(error) or type(error).__name__)
def line(body):
    with open(os.path.join(folder, "batches"), "a") as out:
        out.write(json.dumps(body) + "\\n")
try:
    model = ask("/v1/models")["data"][0]["id"]
except Exception as error:
    line({"error": "no model: %s" % error})
    sys.exit(1)
ends = time.monotonic() + told["seconds"]
while time.monotonic() < ends and not os.path.exists(os.path.join(folder, "stop")):
    results, begun = [], time.monotonic()
    threads = [threading.Thread(target=one, args=(model, results))
               for _ in range(told["concurrency"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tokens = sum(r for r in results if isinstance(r, int))
    errors = [r for r in results if isinstance(r, str)]
    line({"seconds": time.monotonic() - begun, "tokens": tokens, "requests": len(results),
          "failed": len(errors), "error": errors[0] if errors else None})
    if len(errors) == len(results):
        time.sleep(1)
line({"ended": True})
"""
"""JSON -> batches of ``concurrency`` requests until told to stop; one line a batch."""

START = """
set -eu
folder=$1 program=$2 told=$3
if [ -s "$folder/pid" ]; then kill "$(cat "$folder/pid")" 2>/dev/null || true; fi
rm -rf "$folder"
mkdir -p "$folder"
nohup python3 -c "$program" "$told" >"$folder/out" 2>&1 </dev/null &
echo $! >"$folder/pid"
"""
"""FOLDER PROGRAM JSON: start the load detached, so that no connection has to last as long."""

READ_LOAD = """
pid=$(cat "$1/pid" 2>/dev/null || echo)
state=$(cat "/proc/${pid:-none}/stat" 2>/dev/null || true)
state=${state##*) }
cat "$1/batches" 2>/dev/null || true
case ${state:-Z} in Z*|X*)
  echo '{"dead": true}'
  tail -c 2000 "$1/out" >&2 2>/dev/null || true;;
esac
"""
"""FOLDER -> the batches, then ``dead`` where the load has ended: asked first, so that its last
line is among them. Nobody may wait for it in its container: a zombie has ended, too."""

END_SERVER = """
signal=$1
own=" $(cat "$2"/*/pid 2>/dev/null | tr '\\n' ' ') "
for comm in /proc/[0-9]*/comm; do
  case $(cat "$comm" 2>/dev/null) in ncu|nv-nsight-cu-cli) ;; *) continue;; esac
  parent=${comm#/proc/} parent=${parent%/comm}
  for stat in /proc/[0-9]*/stat; do
    line=$(cat "$stat" 2>/dev/null) || continue
    pid=${line%% *} rest=${line##*) } rest=${rest#* }
    [ "${rest%% *}" = "$parent" ] || continue
    case ${line##*) } in Z*) continue;; esac
    case $own in *" $pid "*) continue;; esac
    case $(cat "/proc/$pid/comm" 2>/dev/null) in ncu|nv-nsight-cu-cli) continue;; esac
    if kill "-$signal" "$pid" 2>/dev/null; then echo "$pid"; fi
  done
done
"""
"""SIGNAL NOTES -> the children of ncu that it was sent to: the server. ncu must live to write.

As the first process of its container it adopts orphans: ended ones and our own load are no server.
"""

BOUNDED = """
limit=$1
shift
if command -v timeout >/dev/null 2>&1; then exec timeout -k 5 "$limit" "$@"; fi
exec "$@"
"""
BOUNDED_OUT = 124
"""SECONDS COMMAND... -> the command, ended after that time where the image has ``timeout``."""

FREE_CLOCKS_S = 20
"""So long a reset of the clocks may take."""

INDEX = """
cd "$1"
for file in *.ncu-rep *.ncu-repz; do
  [ -f "$file" ] || continue
  set -- "$(wc -c <"$file")" "$(sha256sum <"$file")"
  printf '%s %s %s\\n' "${2%% *}" "$((${1}))" "$file"
done
"""
"""FOLDER -> a line a report: sha256, size in bytes, name."""

CHUNK = 'tail -c "+$2" -- "$1" | head -c "$3"'
"""FILE FIRST-BYTE (from 1) COUNT -> those bytes."""

LISTENING = """
first=$1 last=$(($1 + $2))
for table in /proc/net/tcp /proc/net/tcp6; do
  [ -r "$table" ] || continue
  while read -r _ address _ state _; do
    [ "$state" = 0A ] || continue
    port=$(printf '%d' "0x${address##*:}")
    if [ "$port" -ge "$first" ] && [ "$port" -lt "$last" ]; then echo "$port"; fi
  done <"$table"
done
"""
"""FIRST COUNT -> the ports among these that are listened on, one a line; nothing connects."""

ATTACH = """
set -eu
log=$1
shift
mkdir -p "${log%/*}"
nohup "$@" >"$log" 2>&1 </dev/null &
echo $!
"""
"""LOG COMMAND... -> the process id of the command, started detached."""

ATTACH_STATE = """
kill -0 "$2" 2>/dev/null || echo dead >&2
cat "$1" 2>/dev/null || true
"""
"""LOG PID -> the log; ``dead`` on stderr where the process has ended."""

PROBE_KERNEL = """
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    print("no driver library: %s" % error)
    sys.exit(3)
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        print("%s gave %d" % (name, code))
        sys.exit(3)
context, module, kernel, device = (ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(),
                                   ctypes.c_int())
ptx = (b".version 6.0\\n.target sm_50\\n.address_size 64\\n"
       b".visible .entry solscope_probe() { ret; }\\n\\0")
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), ptx)
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"solscope_probe")
call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None)
call("cuCtxSynchronize")
"""
"""One empty kernel through the driver alone: no framework, a few hundred megabytes of context."""
