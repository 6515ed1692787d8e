// Server-sent events as they come over the wire, cut anywhere.

export interface Message {
  id: string | null;
  type: string;
  data: string;
}

/** A line longer than this is not one of ours. */
const MAX_LINE = 4 << 20;

export class MessageParser {
  private rest = "";
  private id: string | null = null;
  private type = "";
  private data: string[] = [];

  /** The messages that are complete with this piece of text. */
  push(piece: string): Message[] {
    const lines = (this.rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    if (this.rest.length > MAX_LINE) throw new Error("a line of the stream is too long");
    const messages: Message[] = [];
    for (const line of lines) {
      const message = this.line(line);
      if (message) messages.push(message);
    }
    return messages;
  }

  private line(line: string): Message | null {
    if (line === "") {
      const message =
        this.data.length > 0 ? { id: this.id, type: this.type || "message", data: this.data.join("\n") } : null;
      this.type = "";
      this.data = [];
      return message;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.id = value;
    else if (field === "event") this.type = value;
    else if (field === "data") this.data.push(value);
    return null;
  }
}
