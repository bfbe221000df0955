// Browsers start no workers for pages that are opened from a folder. There, the search runs in a hidden frame instead.
// Material's offline plugin looks for a script of this name, and would load one from elsewhere if there were none.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
      this.inside.importScripts = () => {}; // of languages other than English
      const script = frame.contentDocument.createElement("script");
      script.src = new URL(address, location.href);
      this.isReady = new Promise((resolve) => script.addEventListener("load", resolve));
      frame.contentDocument.body.append(script);
      this.terminate = () => frame.remove();
    }

    async postMessage(data) {
      await this.isReady;
      this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data: this.inside.structuredClone(data) }));
    }
  };
}
