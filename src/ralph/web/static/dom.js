// Descriptions of nodes, and the one function that makes the page look like them.
//
// `patch` changes nodes in place: what did not change keeps its focus, its selection, its scroll position and its open
// folds, however often a run tells something new. Text only ever becomes text: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";
const ONCE = new Set(["value", "checked", "open", "selected"]); // afterwards they belong to the user
const OWN = new Set(["key", "mount", "update", "own"]);
const LINK = /^(#|\/report\/[0-9a-f-]+$)/;
const known = new WeakMap(); // node → what it was made from

/** Describe an element. `key` tells it from its siblings; with `own`, `mount` fills it and `patch` leaves it alone. */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children };
}

function* shown(children) {
  for (const child of Array.isArray(children) ? children : [children]) {
    if (Array.isArray(child)) yield* shown(child);
    else if (child !== null && child !== undefined && child !== false && child !== "") yield child;
  }
}

export function patch(parent, children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const keyed = new Map();
  const loose = new Map();
  for (const node of parent.childNodes) {
    const id = idOf(node);
    if (id.startsWith("=")) keyed.set(id, node);
    else if (loose.has(id)) loose.get(id).push(node);
    else loose.set(id, [node]);
  }
  const wanted = [];
  for (const child of shown(children)) {
    const id = typeof child === "object" ? nameOf(child.tag, child.props.key) : "#text";
    let node = id.startsWith("=") ? keyed.get(id) : loose.get(id)?.shift();
    if (id.startsWith("=")) keyed.delete(id);
    node = typeof child === "object" ? element(node, child, parent) : text(node, String(child));
    wanted.push(node);
  }
  const kept = new Set(wanted);
  for (const node of [...parent.childNodes]) if (!kept.has(node)) node.remove();
  let cursor = parent.firstChild;
  for (const node of wanted) {
    if (node === cursor) cursor = cursor.nextSibling;
    else if (node.parentNode === parent && parent.moveBefore) parent.moveBefore(node, cursor);
    else parent.insertBefore(node, cursor);
  }
  if (focused && document.activeElement !== focused && focused.isConnected) focused.focus({ preventScroll: true });
}

const nameOf = (tag, key) => (key === undefined ? tag : `=${tag} ${key}`);

function idOf(node) {
  if (node.nodeType === Node.TEXT_NODE) return "#text";
  const made = known.get(node);
  return made ? nameOf(made.tag, made.props.key) : "#other";
}

function text(node, wanted) {
  if (!node) return document.createTextNode(wanted);
  if (node.data !== wanted) node.data = wanted;
  return node;
}

function element(node, wanted, parent) {
  const isNew = !node;
  if (isNew) {
    const isSvg = wanted.tag === "svg" || parent.namespaceURI === SVG;
    node = isSvg ? document.createElementNS(SVG, wanted.tag) : document.createElement(wanted.tag);
  }
  apply(node, isNew ? {} : known.get(node).props, wanted.props, isNew);
  known.set(node, wanted);
  if (!wanted.props.own) patch(node, wanted.children);
  if (isNew) wanted.props.mount?.(node);
  wanted.props.update?.(node);
  return node;
}

function apply(node, old, props, isNew) {
  for (const name in old) {
    if (name in props || OWN.has(name) || ONCE.has(name)) continue;
    if (name.startsWith("on")) node[name] = null;
    else node.removeAttribute(name);
  }
  for (const [name, value] of Object.entries(props)) {
    if (OWN.has(name) || (ONCE.has(name) && !isNew)) continue;
    if (name.startsWith("on")) node[name] = value;
    else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else if (value === old[name]) continue;
    else if (ONCE.has(name)) node[name] = value;
    else if (value === false || value === null || value === undefined) node.removeAttribute(name);
    else node.setAttribute(name, name === "href" ? link(value) : value === true ? "" : value);
  }
}

/** Links lead to a part of this page or to a report, never to where a text says. */
function link(value) {
  if (!LINK.test(value)) throw new Error(`not a link of this page: ${value}`);
  return value;
}

export const byId = (id) => document.getElementById(id);

/** A list of elements without empty ones, with something between each two. */
export function between(list, separator = " · ") {
  const kept = [...shown(list)].filter((each) => each !== 0);
  return kept.flatMap((each, at) => (at ? [separator, each] : [each]));
}
