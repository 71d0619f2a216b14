// Requests of the chat to the API server.

import { agent } from "./net.js";

export class Calls {
  #signal;

  /** Create the requests of an open chat tab; `signal` aborts those that only show something. */
  constructor(signal) {
    this.#signal = signal;
  }

  /** Create a chat and return its id. */
  async create() {
    return (await this.#call("POST", "/sessions", {})).id;
  }

  change(id, members) {
    return this.#call("PATCH", `/sessions/${encodeURIComponent(id)}`, members);
  }

  remove(id) {
    return this.#call("DELETE", `/sessions/${encodeURIComponent(id)}`);
  }

  /** Return the stored messages of a chat. */
  async stored(id) {
    return (await this.#call("GET", `/sessions/${encodeURIComponent(id)}/messages`)).messages ?? [];
  }

  /** Remove a message of the user and all after it. */
  truncate(id, row) {
    return this.#call("DELETE", `/sessions/${encodeURIComponent(id)}/messages?from_row=${row}`);
  }

  /** Return the state of a run; null if the API server has dropped the run. */
  async run(id) {
    try {
      return id ? await this.#call("GET", `/runs/${encodeURIComponent(id)}`) : null;
    } catch (error) {
      if (error.status === 404) return null;
      throw error;
    }
  }

  stop(run) {
    return agent("POST", `/runs/${encodeURIComponent(run)}/stop`);
  }

  /** Answer the approval request of one call. */
  answer(run, id, choice) {
    return agent("POST", `/runs/${encodeURIComponent(run)}/approval`, { choice, call_id: id });
  }

  /** Send the request that reverts a change of a note. */
  memory({ method, body }) {
    return agent(method, "/memory", body);
  }

  #call(method, path, body) {
    return agent(method, path, body, this.#signal);
  }
}
