"use strict";

/** The only global of the engine; the files after this one add to it. */
const Abstain = {};

/** Reads the typed arrays that `encoding.py` has written to data elements: base64 of gzip, in byte planes. */
Abstain.arrays = (() => {
  const WIDTHS = { uint8: 1, uint16: 2, uint32: 4, float32: 4, float64: 8 };
  const TYPES = {
    uint8: Uint8Array,
    uint16: Uint16Array,
    uint32: Uint32Array,
    float32: Float32Array,
    float64: Float64Array,
  };

  /** @param {string} text */
  function fromBase64(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
    return bytes;
  }

  async function unzip(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /** Byte planes (all first bytes, then all second bytes, …) → numbers of `width` bytes each. */
  function joinPlanes(planes, width) {
    if (width === 1) return planes;
    const length = planes.length / width;
    const bytes = new Uint8Array(planes.length);
    for (let b = 0; b < width; b++) {
      const from = b * length;
      for (let i = 0, to = b; i < length; i++, to += width) bytes[to] = planes[from + i];
    }
    return bytes;
  }

  function readDictionary(bytes, facts) {
    const dictionary = new Float64Array(bytes.buffer, 0, facts.distinct);
    const planes = bytes.subarray(8 * facts.distinct);
    const indices = facts.width === 1 ? planes : new Uint16Array(joinPlanes(planes, 2).buffer);
    const values = new Float64Array(facts.length);
    for (let i = 0; i < values.length; i++) values[i] = dictionary[indices[i]];
    return values;
  }

  function unpackBits(bytes, length) {
    const flags = new Uint8Array(length);
    for (let i = 0; i < length; i++) flags[i] = (bytes[i >> 3] >> (i & 7)) & 1;
    return flags;
  }

  /** The bytes of a data element. Its text stays in the document, for readers who save the page from the browser. */
  function bytesOf(document, name) {
    return unzip(fromBase64(document.getElementById(`data-${name}`).textContent));
  }

  /** The array in a data element. `facts` describe its encoding; floating point numbers become float64. */
  async function read(document, name, facts) {
    const bytes = await bytesOf(document, name);
    if (facts.kind === "dictionary") return readDictionary(bytes, facts);
    if (facts.kind === "bits") return unpackBits(bytes, facts.length);
    const values = new TYPES[facts.kind](joinPlanes(bytes, WIDTHS[facts.kind]).buffer, 0, facts.length);
    return facts.kind === "float32" ? Float64Array.from(values) : values;
  }

  /** The text in a packed data element. */
  async function readText(document, name) {
    return new TextDecoder().decode(await bytesOf(document, name));
  }

  return { read, readText };
})();
