// Server-sent events over fetch(), which can send a token; EventSource cannot.
import { NoToken, headers } from "/web/api.js";

const SILENCE_MS = 15000;  // the manager sends at least a heartbeat every 5 s

/** Takes the text of a stream in pieces, and calls `hear(kind, id, data)` for each whole message. */
export function reader(hear, settings) {
  let rest = "";
  return (piece) => {
    const parts = (rest + piece).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      let kind = "message", data = "";
      for (const line of part.split("\n")) {
        const colon = line.indexOf(":");
        const name = line.slice(0, colon), value = line.slice(colon + 1).trimStart();
        if (name === "id") settings.last = value;
        else if (name === "event") kind = value;
        else if (name === "data") data += value;
        else if (name === "retry") settings.retry = Number(value);
      }
      if (data) hear(kind, data);
    }
  };
}

/** Listens for ever. `told`: the id of the last known event. `live(true or a sentence)` says how it goes. */
export async function listen(last, hear, live) {
  const settings = { last, retry: 1000 };
  for (;;) {
    let silence = 0;
    try {
      const control = new AbortController();
      const answer = await fetch("/v1/events", {
        headers: headers({ Accept: "text/event-stream", "Last-Event-ID": settings.last }), cache: "no-store", signal: control.signal });
      if (answer.status === 401) throw new NoToken("a token is needed");
      if (!answer.ok) throw new Error("the manager answers " + answer.status);
      live(true);
      const take = reader(hear, settings);
      const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        silence = setTimeout(() => control.abort(), SILENCE_MS);
        const { done, value } = await pieces.read();
        clearTimeout(silence);
        if (done) break;
        take(value);
      }
    } catch (error) {
      clearTimeout(silence);
      live(error instanceof NoToken ? error : error.message || "the connection has ended");
      if (error instanceof NoToken) return;
    }
    await new Promise((wake) => setTimeout(wake, settings.retry));
  }
}
