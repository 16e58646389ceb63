// A model endpoint over a real engine: chat completions, streamed. Arguments: the model file.
//
// The model has random weights, so what it says is nonsense; a grammar keeps it to what can be used. Where the conversation holds no
// tool result yet, it has to call the tool glob; then it says a few words. Writes its address, and a line of JSON for each request.
import http from "node:http";
import {getLlama, LlamaCompletion} from "node-llama-cpp";

const llama = await getLlama({gpu: false, build: "never", logLevel: "error", maxThreads: 1});
const model = await llama.loadModel({modelPath: process.argv[2]});
const context = await model.createContext({contextSize: 4096});
const completion = new LlamaCompletion({contextSequence: context.getSequence()});
const call = await llama.createGrammar({grammar: String.raw`root ::= "{\"pattern\":\"" ("one" | "two") ".txt\"}"`});
const words = await llama.createGrammar({grammar: "root ::= [a-z ]+"});

async function answer(request, write) {
  const result = request.messages.findLast((m) => m.role === "tool");
  const offered = (request.tools ?? []).map((t) => t.function.name);
  console.log(JSON.stringify({messages: request.messages.length, offered, result: result?.content ?? ""}));
  const say = (delta, finish_reason = null) => write({choices: [{index: 0, delta, finish_reason}]});
  const sample = (options) => completion.generateCompletion(JSON.stringify(request.messages).slice(-1000), options);
  say({role: "assistant"});
  if (!result && offered.includes("glob")) {
    const piece = (f) => say({tool_calls: [{index: 0, function: f}]});
    say({tool_calls: [{index: 0, id: "call_1", type: "function", function: {name: "glob", arguments: ""}}]});
    await sample({grammar: call, maxTokens: 64, onTextChunk: (text) => piece({arguments: text})});
    say({}, "tool_calls");
  } else {
    await sample({grammar: words, maxTokens: 24, onTextChunk: (content) => say({content})});
    say({}, "stop");
  }
}

const server = http.createServer(async (req, res) => {
  let body = "";
  for await (const piece of req) body += piece;
  if (req.method === "GET") {
    res.setHeader("Content-Type", "application/json");
    res.end(JSON.stringify({object: "list", data: [{id: "tiny", object: "model"}]}));
    return;
  }
  res.setHeader("Content-Type", "text/event-stream");
  await answer(JSON.parse(body), (chunk) => res.write(`data: ${JSON.stringify(chunk)}\n\n`));
  res.end("data: [DONE]\n\n");
});
process.stdin.resume().on("end", () => process.exit(0)); // with whoever started it
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
