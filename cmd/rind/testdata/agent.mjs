// An agent on the official SDK, with no model behind it: it thinks, writes, plans, reads, asks before it edits, and tells what it used. A prompt that
// says "slowly" is answered in many small pieces with a call left open among them, so that the turn can be cut anywhere.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import * as acp from '@agentclientprotocol/sdk';

const sessions = new Map(); // id -> {cwd, stop}
let count = 0;

const words = 'Über die Brücke 🌉 ging es <langsam> & leise, "Wort" für Wort\u2028— bis ans Ende 👩‍💻.\n';

async function answer({ params, client }) {
  const session = sessions.get(params.sessionId);
  if (!session) throw acp.RequestError.invalidParams(undefined, 'no such session');
  session.stop = new AbortController();
  const stopped = () => session.stop.signal.aborted;
  const tell = (update) => client.notify('session/update', { sessionId: params.sessionId, update });
  const say = (text, kind = 'agent_message_chunk') => tell({ sessionUpdate: kind, content: { type: 'text', text } });
  const asked = params.prompt.findLast((b) => b.type === 'text')?.text ?? ''; // what stands before it is of the past
  const call = `call_${++count}`;

  if (asked.includes('slowly')) {
    for (let i = 0; i < 400; i++) {
      if (i === 10) await tell({ sessionUpdate: 'tool_call', toolCallId: call, title: 'Look around', kind: 'search', status: 'in_progress' });
      for (const piece of words.match(/[^]{1,7}/gu)) {
        if (stopped()) return { stopReason: 'cancelled' };
        await say(piece);
        await pause(4);
      }
    }
    return { stopReason: 'end_turn' };
  }

  for (const piece of ['Where is it? ', 'In ', 'config.txt, I think.']) await say(piece, 'agent_thought_chunk');
  for (const piece of ['I will ', 'look ', 'at it ', 'first 👀', ', and ', 'then ', 'change ', 'it.\n']) {
    await say(piece);
    await pause(5);
    if (stopped()) return { stopReason: 'cancelled' };
  }
  const plan = (one, two) => tell({ sessionUpdate: 'plan', entries: [
    { content: 'Read the file', priority: 'high', status: one }, { content: 'Change the file', priority: 'medium', status: two }] });
  await plan('in_progress', 'pending');

  const path = join(session.cwd, 'config.txt');
  let old = null;
  try { old = readFileSync(path, 'utf8'); } catch {}
  const read = { toolCallId: `${call}_read`, title: 'Read config.txt', kind: 'read', locations: [{ path }] };
  await tell({ sessionUpdate: 'tool_call', ...read, status: 'pending', rawInput: { path } });
  await tell({ sessionUpdate: 'tool_call_update', toolCallId: read.toolCallId, status: 'completed',
    content: [{ type: 'content', content: { type: 'text', text: old ?? 'There is none yet.' } }], rawOutput: { bytes: old?.length ?? 0 } });
  await plan('completed', 'in_progress');

  const next = (old ?? '') + 'colour = "blau"\n';
  const edit = { toolCallId: `${call}_edit`, title: 'Change config.txt', kind: 'edit', locations: [{ path }], rawInput: { path } };
  const content = [{ type: 'diff', path, oldText: old, newText: next }];
  await tell({ sessionUpdate: 'tool_call', ...edit, content, status: 'pending' });
  const { outcome } = await client.request('session/request_permission', { sessionId: params.sessionId, toolCall: { ...edit, content, status: 'pending' }, options: [
    { optionId: 'yes', name: 'Change it', kind: 'allow_once' }, { optionId: 'always', name: 'Change it, always', kind: 'allow_always' },
    { optionId: 'no', name: 'Leave it', kind: 'reject_once' }] });
  if (outcome.outcome === 'cancelled' || stopped()) return { stopReason: 'cancelled' };
  const allowed = outcome.optionId !== 'no';
  if (allowed) {
    await tell({ sessionUpdate: 'tool_call_update', toolCallId: edit.toolCallId, status: 'in_progress' });
    writeFileSync(path, next);
  }
  await tell({ sessionUpdate: 'tool_call_update', toolCallId: edit.toolCallId, status: allowed ? 'completed' : 'failed', content });
  await plan('completed', allowed ? 'completed' : 'pending');
  await tell({ sessionUpdate: 'usage_update', used: 1200, size: 100000, cost: { amount: 0.01, currency: 'USD' } });
  for (const piece of allowed ? ['It is ', 'done.'] : ['I left ', 'it.']) await say(piece);
  return { stopReason: 'end_turn', usage: { inputTokens: 1000, outputTokens: 200, totalTokens: 1200 } };
}

acp.agent({ name: 'play' })
  .onRequest('initialize', () => ({
    protocolVersion: acp.PROTOCOL_VERSION, agentInfo: { name: 'play', version: '1.0.0' },
    agentCapabilities: { loadSession: false, promptCapabilities: { image: true, embeddedContext: true } },
  }))
  .onRequest('session/new', ({ params }) => {
    const sessionId = `play-${process.pid}-${sessions.size + 1}`;
    sessions.set(sessionId, { cwd: params.cwd });
    return { sessionId };
  })
  .onRequest('session/prompt', answer)
  .onNotification('session/cancel', ({ params }) => sessions.get(params.sessionId)?.stop?.abort())
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
process.stdin.on('end', () => process.exit(0));
