// A small client of `rind serve` (docs/http.md) for Node 18 or newer, without dependencies: it starts one execution, tells its events on
// standard output, one JSON object a line, and says yes to what it asks. It gets over cut connections and restarts of the server: the key
// makes the start happen once, the cursor makes each event come once, and an answer whose reply was lost is found to be given.
//
//   node docs/clients/ts/client.mjs http://127.0.0.1:4310 ~/.rind/http-token mock job-1 "Say hello"
//
// It exits 0 when the execution succeeded, else 1.
// @ts-check
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** What the server says to be so: asking again would not change it. */
class Refusal extends Error {
  constructor(/** @type {number} */ status, /** @type {string} */ text) {
    super(`${status} ${text}`);
    this.status = status;
  }
}

export class Client {
  constructor(/** @type {string} */ base, /** @type {string} */ token) {
    this.base = base;
    this.headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  }

  /** Sends a request; what is not a success is an error. */
  async send(/** @type {string} */ path, /** @type {RequestInit} */ init) {
    const response = await fetch(this.base + path, { ...init, headers: { ...this.headers, ...init.headers } });
    if (response.ok) return response;
    throw new Refusal(response.status, await response.text());
  }

  /** Sends until there is an answer: what has none, or a 5xx, may be asked again, as asking twice does nothing twice here. */
  async post(/** @type {string} */ path, /** @type {object} */ body) {
    for (let wait = 50; ; wait = Math.min(2 * wait, 2000)) {
      try {
        return await (await this.send(path, { method: "POST", body: JSON.stringify(body) })).json();
      } catch (error) {
        if (error instanceof Refusal && error.status < 500) throw error;
        console.error("again:", String(error));
        await sleep(wait);
      }
    }
  }

  /** Gives every event once and in order, until the terminal one. */
  async *follow(/** @type {string} */ execution) {
    let cursor = 0;
    for (let wait = 50; ; wait = Math.min(2 * wait, 2000)) {
      try {
        const headers = { Accept: "text/event-stream", "Last-Event-ID": String(cursor) };
        const response = await this.send(`/v1/executions/${execution}/events`, { headers });
        for await (const line of lines(response)) {
          if (!line.startsWith("data: ")) continue;
          const event = JSON.parse(line.slice(6));
          if (event.sequence <= cursor) continue;
          cursor = event.sequence;
          wait = 50;
          yield event;
          if (["run.completed", "run.failed", "run.cancelled"].includes(event.type)) return;
        }
      } catch (error) {
        if (error instanceof Refusal && error.status < 500) throw error;
        console.error(`again from ${cursor}:`, String(error)); // the server went away: gone on from where it was
      }
      await sleep(wait);
    }
  }
}

/** The lines of a body; the last one only when it is whole. */
async function* lines(/** @type {Response} */ response) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of /** @type {any} */ (response.body)) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}

async function main(/** @type {string[]} */ [base, tokenFile, provider, key, input]) {
  const client = new Client(base, readFileSync(tokenFile, "utf8").trim());
  const conversation = await client.post("/v1/conversations", {});
  const request = { conversationId: conversation.id, providerId: provider, input, idempotencyKey: key };
  const execution = await client.post("/v1/executions", request);
  let last;
  for await (const event of client.follow(execution.id)) {
    console.log(JSON.stringify((last = event)));
    if (event.type !== "action.required" || event.data.kind !== "approval") continue;
    try {
      await client.post(`/v1/executions/${execution.id}/actions/${event.data.id}:respond`, { approved: true });
    } catch (error) {
      // 409, 404: answered already, perhaps by us, or not asked any more.
      if (!(error instanceof Refusal) || ![404, 409].includes(error.status)) throw error;
    }
  }
  return last?.type === "run.completed" ? 0 : 1;
}

const args = process.argv.slice(2);
if (args.length !== 5) {
  console.error("usage: node client.mjs BASE-URL TOKEN-FILE PROVIDER KEY INPUT");
  process.exit(2);
}
process.exitCode = await main(args).catch((error) => {
  console.error(String(error));
  return 1;
});
