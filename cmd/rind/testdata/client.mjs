// A stock JSON-RPC client, driven over Content-Length framing or, with a reader and writer of a few lines, over JSON lines.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
const require = createRequire(process.cwd() + '/');
const rpc = require('vscode-jsonrpc/node');

const [framing, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const exited = new Promise((done) => child.on('exit', done)); // it may be gone before its last answer is read

class LineReader extends rpc.AbstractMessageReader {
  constructor(stream) { super(); this.stream = stream; this.rest = ''; }
  listen(callback) {
    this.stream.setEncoding('utf8');
    this.stream.on('data', (text) => {
      const lines = (this.rest + text).split('\n');
      this.rest = lines.pop();
      for (const line of lines) callback(JSON.parse(line));
    });
    return rpc.Disposable.create(() => {});
  }
}
class LineWriter extends rpc.AbstractMessageWriter {
  constructor(stream) { super(); this.stream = stream; }
  async write(message) { this.stream.write(JSON.stringify(message) + '\n'); }
  end() {}
}
const lines = framing === 'lines';
const reader = lines ? new LineReader(child.stdout) : new rpc.StreamMessageReader(child.stdout);
const writer = lines ? new LineWriter(child.stdin) : new rpc.StreamMessageWriter(child.stdin);
const connection = rpc.createMessageConnection(reader, writer);
const events = [];
connection.onNotification('session/update', (params) => events.push(params));
connection.listen();

const must = (ok, what) => { if (!ok) { console.error('FAILED: ' + what); process.exit(1); } };
const info = await connection.sendRequest('initialize', { client_capabilities: [] });
must(info.protocol_version === '2', 'protocol version');
const result = await connection.sendRequest('session/prompt', { input: 'hi' });
must(result.outcome === 'completed', 'outcome ' + JSON.stringify(result));
must(events.map((e) => e.sequence).every((n, i) => n === i + 1), 'sequence');
const text = events.filter((e) => e.event.type === 'assistant_delta').map((e) => e.event.text).join('');
must(text === 'Hello from the script.', 'text ' + text);
must(events.at(-1).event.type === 'turn_completed', 'the answer follows the terminal');
try {
  await connection.sendRequest('no/such', {});
  must(false, 'an unknown method was answered');
} catch (e) {
  must(e.code === -32601 && e.data.type === 'MethodNotFound', 'error ' + JSON.stringify(e));
}
must((await connection.sendRequest('shutdown', {})).ok === true, 'shutdown');
const code = await exited;
must(code === 0, 'exit code ' + code);
console.log('ok ' + framing);
process.exit(0);
