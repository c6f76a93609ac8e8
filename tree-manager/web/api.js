// Asks the manager. A token, once given, stays only in this page's memory.
let token = "";

export class NoToken extends Error {}

export function useToken(text) {
  token = text;
}

export function headers(more = {}) {
  return token ? { ...more, Authorization: "Bearer " + token } : more;
}

async function reason(answer) {
  try {
    return (await answer.json()).error.message;
  } catch {
    return "the manager answers " + answer.status;
  }
}

/** Asks once more if the manager has just closed the connection that the browser kept. */
async function ask(path) {
  const options = { headers: headers(), cache: "no-store" };
  return fetch(path, options).catch(() => fetch(path, options));
}

/** Throws NoToken if the manager wants a token; returns null for an object that does not exist. */
export async function get(path) {
  const answer = await ask(path);
  if (answer.status === 401) throw new NoToken("a token is needed");
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(await reason(answer));
  return answer.json();
}
