"use strict";
// Draws what the page's data says. Text from run folders only ever becomes text, never markup.
(function () {
  const COLOURS = ["#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#a6761d", "#666666", "#66a61e"];
  const LIKELY = [[0, "#762a83"], [0.5, "#f0f0f0"], [1, "#1b7837"]];
  const $ = (id) => document.getElementById(id);
  const TYPES = { f4: Float32Array, i4: Int32Array, i1: Int8Array };
  let data = JSON.parse($("data").textContent);
  let chosen = null;      // the name of the run that is shown
  let order = { key: null, up: true };
  const timers = {};

  // --- small things ---------------------------------------------------------

  function el(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties || {});
    for (const child of children) made.append(child);
    return made;
  }

  function unpack(packed) {
    if (packed.values) return packed.values;
    const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
    packed.values = new TYPES[packed.type](bytes.buffer);
    return packed.values;
  }

  // Plotly reads a little markup in its texts.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = (x, digits) => (x === null || x === undefined ? "" : String(Number(x.toPrecision(digits || 4))));
  const faded = (hex) => hex + "33";

  function power(logarithm) {   // of ten, also where the number itself is too small for a number
    if (logarithm === null) return "an unknown one";
    if (logarithm > -4) return short(Math.pow(10, logarithm), 2);
    const exponent = Math.floor(logarithm);
    return `${short(Math.pow(10, logarithm - exponent), 2)}e${exponent}`;
  }

  function spent(seconds) {
    if (seconds === null || seconds === undefined) return "";
    const whole = Math.round(seconds), hours = Math.floor(whole / 3600);
    const pad = (n) => String(n).padStart(2, "0");
    return `${hours}:${pad(Math.floor(whole / 60) % 60)}:${pad(whole % 60)}`;
  }

  function draw(place, title, traces, layout) {
    const ink = colour("--ink"), line = colour("--line");
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true, exponentformat: "power" };
    const size = Math.min(1.6, Math.max(1, window.innerWidth / 1400));   // a projector is looked at from afar
    const base = {
      title: { text: plain(title), font: { size: 13 * size }, x: 0.02, xanchor: "left", y: 1, yanchor: "top", pad: { t: 6 } },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: 11 * size }, margin: { l: 50, r: 14, t: layout.showlegend ? 52 * size : 34 * size, b: 40 }, height: 300,
      hoverlabel: { namelength: -1 }, showlegend: false,
      legend: { orientation: "h", x: 1, xanchor: "right", y: 1.01, yanchor: "bottom" },
    };
    const full = Object.assign(base, layout);
    full.xaxis = Object.assign({}, axis, layout.xaxis);
    full.yaxis = Object.assign({}, axis, layout.yaxis);
    for (const name of ["xaxis", "yaxis"]) {
      if (typeof full[name].title === "string") full[name].title = { text: plain(full[name].title) };
    }
    const printing = document.documentElement.dataset.printing;
    if (full.height === "square") full.height = Math.round(printing ? 340 : Math.min(760, Math.max(340, place.clientWidth)));
    else full.height = Math.round(full.height * (printing ? 1 : size));
    place.style.height = `${full.height}px`;   // or Plotly makes it lower when the window changes
    // On paper the width is the page's, which Plotly would not ask for again.
    if (printing) full.width = place.clientWidth;
    for (const trace of traces) {   // a line of one point is nothing to see
      if (trace.mode === "lines" && trace.x.length < 2 && !trace.fill) trace.mode = "markers";
    }
    Plotly.react(place, traces, full, { responsive: true, displayModeBar: false });
  }

  function panel(parent, id, properties) {
    let place = $(id);
    if (!place) {
      place = el("div", Object.assign({ id: id, className: "panel" }, properties || {}));
      parent.append(place);
    }
    return place;
  }

  function band(x, low, high, hue) {
    return {
      x: [...x, ...[...x].reverse()], y: [...high, ...[...low].reverse()], fill: "toself",
      fillcolor: faded(hue), line: { width: 0 }, mode: "lines", hoverinfo: "skip", showlegend: false,
    };
  }

  function player(button, slider, name, milliseconds) {
    const stop = () => { clearInterval(timers[name]); delete timers[name]; button.textContent = "Play"; };
    button.onclick = () => {
      if (timers[name]) return stop();
      if (Number(slider.value) >= Number(slider.max)) slider.value = 0;
      button.textContent = "Pause";
      timers[name] = setInterval(() => {
        if (Number(slider.value) >= Number(slider.max)) return stop();
        slider.value = Number(slider.value) + 1;
        slider.dispatchEvent(new Event("input"));
      }, milliseconds);
      slider.dispatchEvent(new Event("input"));
    };
    return stop;
  }

  // --- all runs -------------------------------------------------------------

  const COLUMNS = [
    ["name", "run", (r) => r.name], ["state", "state", (r) => r.state], ["reason", "why it failed", (r) => r.reason],
    ["env", "environment", (r) => r.env],
    ["label", "agent", (r) => r.label], ["settings", "settings", (r) => r.settings], ["seed", "seed", (r) => r.seed],
    ["done", "done", (r) => r.done], ["return", "latest return", (r) => r.return], ["solved_at", "solved at", (r) => r.solved_at],
    ["seconds", "time", (r) => r.seconds],
  ];
  const filled = (value) => value !== null && value !== undefined && value !== "";
  const columns = () => COLUMNS.filter(([, , get]) => data.runs.some((run) => filled(get(run))));   // no empty ones
  const NUMBERS = new Set(["seed", "done", "return", "solved_at", "seconds"]);

  function labelColours() {
    const panels = [...data.curves, ...data.scaling];
    const labels = [...new Set(panels.flatMap((one) => one.series.map((series) => series.label)))];
    return new Map(labels.map((label, i) => [label, COLOURS[i % COLOURS.length]]));
  }

  function overview() {
    $("overview").hidden = data.runs.length < 2;
    if (data.runs.length < 2) return;
    const hues = labelColours();
    data.curves.forEach((one, i) => {
      const traces = [];
      for (const series of one.series) {
        const hue = hues.get(series.label) || COLOURS[0], x = unpack(series.x);
        if (series.low) traces.push(band(x, unpack(series.low), unpack(series.high), hue));
        traces.push({
          x: x, y: unpack(series.mean), mode: "lines", line: { color: hue, width: 1.8 },
          name: plain(`${series.label} (${series.seeds} seed${series.seeds === 1 ? "" : "s"})`),
        });
      }
      draw(panel($("curves"), `curve-${i}`), one.env, traces,
        { showlegend: true, xaxis: { title: one.unit }, yaxis: { title: "return in training" } });
    });
    $("scaling-part").hidden = data.scaling.length === 0;
    data.scaling.forEach((one, i) => {
      const traces = [];
      for (const series of one.series) {
        const hue = hues.get(series.label) || COLOURS[0];
        const name = series.unsolved ? `${series.label} (${series.unsolved} unsolved)` : series.label;
        traces.push({
          x: series.runs.map((p) => p[0]), y: series.runs.map((p) => p[1]), mode: "markers",
          marker: { color: hue, size: 5, opacity: 0.5 }, name: plain(name), showlegend: false,
        });
        traces.push({ x: series.sizes, y: series.median, mode: "lines+markers", line: { color: hue }, name: plain(name) });
      }
      draw(panel($("scaling"), `scaling-${i}`), `${one.family}: solved at episode`, traces, {
        showlegend: true, xaxis: { title: "size", type: "log" }, yaxis: { title: "episodes", type: "log" },
      });
    });
    table();
  }

  function table() {
    const head = $("runs").tHead;
    head.replaceChildren(el("tr", {}, ...columns().map(([key, text]) => {
      const cell = el("th", { textContent: text, scope: "col", tabIndex: 0 });
      cell.dataset.key = key;
      if (order.key === key) cell.setAttribute("aria-sort", order.up ? "ascending" : "descending");
      const sort = () => { order = { key: key, up: order.key === key ? !order.up : true }; table(); };
      cell.onclick = sort;
      cell.onkeydown = (event) => { if (event.key === "Enter") sort(); };
      return cell;
    })));
    const states = [...new Set(data.runs.map((run) => run.state))], picked = $("state").value;
    $("state").replaceChildren(el("option", { value: "", textContent: "all states" }),
      ...states.map((state) => el("option", { value: state, textContent: state })));
    $("state").value = states.includes(picked) ? picked : "";
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = data.runs.filter((run) => {
      const text = searched(run);
      return words.every((word) => text.includes(word)) && (!$("state").value || run.state === $("state").value);
    });
    if (order.key !== null) {
      const get = COLUMNS.find(([key]) => key === order.key)[2], sign = order.up ? 1 : -1;
      shown = [...shown].sort((a, b) => {
        const x = get(a), y = get(b);
        if (!filled(x) || !filled(y)) return filled(y) - filled(x);   // what is not known comes last
        return sign * (NUMBERS.has(order.key) ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
      });
    }
    $("runs").tBodies[0].replaceChildren(...shown.map(row));
    $("count").textContent = `${shown.length} of ${data.runs.length} runs`;
  }

  function searched(run) {   // all that the filter looks at: what the table shows, and the configuration
    if (!run.searched) {
      const settings = Object.entries((run.config && run.config.hyperparameters) || {}).map(([key, value]) => `${key}=${value}`);
      run.searched = [...COLUMNS.map(([, , get]) => get(run)), ...settings].join(" ").toLowerCase();
    }
    return run.searched;
  }

  function row(run) {
    const cells = columns().map(([key, , get]) => {
      const value = get(run), cell = el("td");
      if (key === "name") {
        cell.className = "name";
        cell.append(el("a", { textContent: run.name, href: `#run=${encodeURIComponent(run.name)}` }));
      } else if (key === "done") {
        const share = run.state === "done" ? 100 : Math.round((100 * run.done) / run.budget);
        cell.textContent = run.budget ? `${share}%` : "";
      } else if (key === "seconds") cell.textContent = spent(value);
      else cell.textContent = NUMBERS.has(key) ? short(value, key === "return" ? 4 : 9) : value === null ? "" : value;
      if (NUMBERS.has(key)) cell.className = "number";
      if (key === "state") cell.className = value;
      if (key === "reason") cell.className = "reason";
      return cell;
    });
    return el("tr", { className: run.name === chosen ? "chosen" : "" }, ...cells);
  }

  // --- one run --------------------------------------------------------------

  function show(name, jump) {
    const run = data.runs.find((each) => each.name === name);
    if (!run) return;
    if (chosen !== name) for (const id of ["belief", "belief-pair", "metrics", "moments"]) $(id).replaceChildren();
    chosen = name;
    $("run").hidden = false;
    $("run-name").textContent = run.name;
    $("run-name").hidden = data.runs.length === 1;
    const unit = run.unit === "steps" ? "steps" : "episodes";
    const facts = [run.state, run.env, run.label, run.seed === null ? "" : `seed ${run.seed}`,
      run.budget ? `${run.done.toLocaleString("en")} of ${run.budget.toLocaleString("en")} ${unit}` : "",
      run.solved_at === null ? "" : `solved at episode ${run.solved_at}`,
      run.return === null ? "" : `latest ${run.unit === "steps" ? "" : "greedy "}return ${short(run.return)}`, run.settings];
    $("run-facts").textContent = facts.filter(Boolean).join(" · ");
    if (run.link !== null) {
      const href = run.link.split("/").map(encodeURIComponent).join("/");
      $("run-facts").append(" · ", el("a", { textContent: "folder", href: `${href}/` }));
    }
    const lacks = run.reason ? [run.reason, ...run.missing] : run.missing;
    $("missing").replaceChildren(...lacks.map((text) => el("li", { textContent: text })));
    $("notes").replaceChildren(...run.notes.map((text) => el("li", { textContent: text })));
    $("config").textContent = JSON.stringify(run.config, null, 2);
    beliefs(run);
    episode(run);
    metrics(run);
    if (jump) $("run").scrollIntoView();
    if (data.runs.length > 1) table();
  }

  function metrics(run) {
    const columns = run.metrics, time = columns.step ? "step" : "episode";
    const names = Object.keys(columns).filter((name) => !["step", "frames", "episode", "episodes", "lengths"].includes(name));
    $("metrics-part").hidden = names.length === 0;
    names.forEach((name, i) => {
      const values = columns[name], known = values.filter((x) => x !== null);
      const wide = Math.min(...known) > 0 && Math.max(...known) > 50 * Math.min(...known);
      draw(panel($("metrics"), `metric-${i}`, { className: "panel low" }), name.replace(/_/g, " "), [
        { x: columns[time] || values.map((_, k) => k), y: values, mode: "lines", line: { color: COLOURS[0], width: 1.4 },
          connectgaps: true, name: plain(name) },
      ], { xaxis: { title: time }, yaxis: { type: wide ? "log" : "linear" }, height: 240 });
    });
  }

  // --- beliefs --------------------------------------------------------------

  let stopBelief = () => {};

  function beliefs(run) {
    const belief = run.beliefs;
    if (!belief || $("slider").dataset.run !== run.name) stopBelief();
    $("belief-part").hidden = !belief;
    if (!belief) return;
    $("belief").classList.toggle("four", belief.kind === "grid");
    const times = belief.kind === "observations" ? belief.at : belief.looks.map((look) => look.at);
    const slider = $("slider"), last = Number(slider.value) >= Number(slider.max) || slider.dataset.run !== run.name;
    slider.max = times.length - 1;
    if (last) slider.value = times.length - 1;
    slider.dataset.run = run.name;
    const map = belief.kind !== "observations";
    $("move-choice").hidden = !map;
    $("belief-path").textContent = "";
    if (map) {
      const before = $("move").value || "0";
      $("move").replaceChildren(...belief.moves.map((move, i) => el("option", { value: i, textContent: move })));
      $("move").value = before;
      $("belief-intro").textContent =
        `${belief.moves[0]} is the good action in every state. Where the Q values along the optimal path are correlated, one ` +
        "sample gets all of them right at once; were they independent, a whole path of good actions would hardly ever be " +
        "drawn (proposition 1).";
    } else {
      $("belief-intro").textContent = "Q values of a few observations from the replay, chosen once: their means and, as " +
        `bands, two standard deviations either side. ${belief.scaling || ""}`;
    }
    const update = () => {
      const i = Math.min(Number(slider.value), times.length - 1);
      $("belief-at").textContent = `${run.unit === "steps" ? "step" : "episode"} ${times[i].toLocaleString("en")}`;
      if (belief.kind === "grid") grid(belief, i);
      else if (belief.kind === "line") line(belief, i);
      else observations(belief, i, run);
      if (map) {
        const look = belief.looks[i];
        const none = `none of ${look.samples} sampled policies is optimal all along the path (so fewer than one in ${Math.round(look.samples / 3)})`;
        const some = `a sampled policy is optimal all along the path with probability ${short(look.joint, 3)} (of ${look.samples} samples)`;
        const unknown = "nothing is known of whole sampled policies";
        $("belief-path").textContent =
          `At this time ${look.joint === null ? unknown : look.joint > 0 ? some : none}; with the same means and variances but independent Q values, ` +
          `one would be with probability ${power(look.log10_factorised)}.`;
        chances(belief, i);
      }
    };
    slider.oninput = update;
    $("move").onchange = update;
    stopBelief = player($("play"), slider, "belief", 700);
    update();
  }

  // Proposition 1 at a glance: the chance of a wholly optimal sample, joint and factorised, over training.
  function chances(belief, i) {
    const at = belief.looks.map((look) => look.at + 1), ink = colour("--faint");
    // None of so many samples: below one in so many.
    const joint = belief.looks.map((look) => (look.joint === null ? null : look.joint || 1 / look.samples));
    const none = (look) => look.joint === 0;
    const marks = belief.looks.map((look) => (none(look) ? "triangle-down-open" : "circle"));
    const said = belief.looks.map((look) => (none(look) ? `below ${short(1 / look.samples, 2)}` : short(look.joint, 3)));
    const alone = belief.looks.map((look) => look.log10_factorised).map((x) => (x === null ? null : Math.pow(10, Math.max(x, -300))));
    draw(panel($("belief-pair"), "belief-chance"), "P(a sample is optimal all along the path)", [
      { x: at, y: joint, name: "joint, as it is (▽ below)", mode: "lines+markers", line: { color: COLOURS[0] },
        marker: { symbol: marks, size: 7 }, text: said, hovertemplate: "%{text}<extra></extra>" },
      { x: at, y: alone, name: "if Q values were independent", mode: "lines+markers", line: { color: COLOURS[1] } },
    ], { showlegend: true, height: "square", xaxis: { title: "episode + 1", type: "log" }, yaxis: { title: "probability", type: "log" },
      shapes: [{ type: "line", x0: at[i], x1: at[i], yref: "paper", y0: 0, y1: 1, line: { dash: "dot", color: ink } }] });
  }

  function range(belief, name, signed) {
    const key = `range-${name}`;
    if (!belief[key]) {
      let high = 1e-9;
      for (const look of belief.looks) for (const x of unpack(look[name])) if (Number.isFinite(x)) high = Math.max(high, Math.abs(x));
      belief[key] = signed ? [-high, high] : [0, high];
    }
    return belief[key];
  }

  function square(belief, values, stride, offset, change) {
    const rows = unpack(belief.rows), columns = unpack(belief.columns);
    if (!belief.lines) belief.lines = [...new Set(rows)].sort((a, b) => a - b);
    const place = new Map(belief.lines.map((x, i) => [x, i]));
    const z = belief.lines.map(() => new Array(belief.lines.length).fill(null));
    for (let k = 0; k < rows.length; k++) z[place.get(rows[k])][place.get(columns[k])] = change(values[stride * k + offset]);
    return z;
  }

  const SQUARE = { xaxis: { title: "column", constrain: "domain" }, height: "square",
    yaxis: { title: "row", autorange: "reversed", scaleanchor: "x", constrain: "domain" } };

  const SIGNED = [[0, "#2166ac"], [0.5, "#f0f0f0"], [1, "#b2182b"]];

  function heat(belief, z, more) {
    return Object.assign({ type: "heatmap", x: belief.lines, y: belief.lines, z: z, hoverongaps: false,
      colorbar: { thickness: 10, len: 0.9 } }, more);
  }

  function grid(belief, i) {
    const look = belief.looks[i], move = Number($("move").value), name = belief.moves[move], parent = $("belief");
    const same = (x) => x, at = (key, change) => square(belief, unpack(look[key]), 2, move, change);
    const visits = range(belief, "visits");
    const top = Math.ceil(Math.log10(1 + visits[1]));
    const ticks = Array.from({ length: top + 1 }, (_, k) => k);
    draw(panel(parent, "belief-visits"), `Visits, ${name}`, [heat(belief, at("visits", (x) => Math.log10(1 + x)), {
      colorscale: "Viridis", zmin: 0, zmax: Math.max(1, top), customdata: at("visits", same),
      hovertemplate: "row %{y}, column %{x}: %{customdata}<extra></extra>",
      colorbar: { thickness: 10, len: 0.9, tickvals: ticks, ticktext: ticks.map((k) => (k ? `1e${k}` : "0")) },
    })], SQUARE);
    const mean = range(belief, "mean", true), std = range(belief, "std");
    draw(panel(parent, "belief-mean"), `Mean of Q, ${name}`, [heat(belief, at("mean", same), { colorscale: SIGNED, zmin: mean[0], zmax: mean[1] })], SQUARE);
    draw(panel(parent, "belief-std"), `Standard deviation of Q, ${name}`, [heat(belief, at("std", same), { colorscale: "Cividis", zmin: 0, zmax: std[1] })], SQUARE);
    const walks = look.paths.map((path, k) => ({
      // Side by side where they go together.
      x: path.columns.map((c) => c + (k - 3.5) * 0.06), y: path.rows.map((r) => r - (k - 3.5) * 0.06),
      mode: "lines+markers", line: { color: COLOURS[k % COLOURS.length], width: 1.6 }, cliponaxis: false,
      marker: end(path), name: `sample ${k + 1}`,
    }));
    draw(panel(parent, "belief-policy"), `P(${belief.moves[0]})${reached(look)}`, [
      heat(belief, square(belief, unpack(look.probability), 1, 0, same), { colorscale: LIKELY, zmin: 0, zmax: 1 }), ...walks], SQUARE);
    correlations(belief, look);
  }

  // Only the end of a path is marked, and where that was the reward by a star.
  function end(path) {
    const last = path.columns.length - 1, here = (yes) => path.columns.map((_, i) => (i === last ? yes : 0));
    return { symbol: path.succeeded ? "star" : "x", size: here(path.succeeded ? 12 : 7) };
  }

  function reached(look) {
    const count = look.paths.filter((path) => path.succeeded).length;
    return `; ${count} of ${look.paths.length} samples to the reward ★`;
  }

  function line(belief, i) {
    const look = belief.looks[i], parent = $("belief"), move = Number($("move").value), x = [...unpack(belief.columns)];
    const pick = (name, k) => x.map((_, j) => unpack(look[name])[2 * j + k]);
    const depth = { xaxis: { title: "depth", range: [0, 1.03 * belief.size] } };
    draw(panel(parent, "belief-visits"), "Visits", belief.moves.map((name, k) => ({
      x: x, y: pick("visits", k).map((n) => n + 1), customdata: pick("visits", k), name: name, mode: "lines", line: { color: COLOURS[k], shape: "hvh" },
      hovertemplate: "depth %{x}: %{customdata}<extra></extra>",
    })), Object.assign({ showlegend: true, yaxis: { title: "visits + 1", type: "log", range: [0, Math.log10(1 + range(belief, "visits")[1]) + 0.1] } }, depth));
    const traces = [];
    belief.moves.forEach((name, k) => {
      const mean = pick("mean", k), std = pick("std", k);
      if (k === move) traces.push(band(x, mean.map((m, j) => m - 2 * std[j]), mean.map((m, j) => m + 2 * std[j]), COLOURS[k]));
      traces.push({ x: x, y: mean, name: name, mode: "lines", line: { color: COLOURS[k] } });
    });
    draw(panel(parent, "belief-mean"), `Mean of Q; for ${belief.moves[move]} ± 2 standard deviations`, traces, Object.assign({ showlegend: true }, depth));
    draw(panel(parent, "belief-std"), `Standard deviation of Q, ${belief.moves[move]}`, [
      { x: x, y: pick("std", move), mode: "lines", line: { color: COLOURS[move] } }],
      Object.assign({ yaxis: { range: [0, 1.05 * range(belief, "std")[1]] } }, depth));
    const walks = look.paths.map((path, k) => ({
      x: [0, path.columns.length], y: [k + 1, k + 1], mode: "lines+markers", line: { color: COLOURS[k % COLOURS.length], width: 3 },
      cliponaxis: false, marker: end({ columns: [0, 1], succeeded: path.succeeded }), name: `sample ${k + 1}`, hovertemplate: "%{x} steps<extra></extra>",
    }));
    draw(panel(parent, "belief-paths"), `How far sampled policies go${reached(look)}`, walks,
      Object.assign({ yaxis: { title: "sample", dtick: 1, range: [0.4, walks.length + 0.6] } }, depth));
    draw(panel(parent, "belief-policy"), `P(${belief.moves[0]})`, [
      { x: x, y: unpack(look.probability), mode: "lines", line: { color: COLOURS[2] } }],
      Object.assign({ yaxis: { range: [0, 1.03] } }, depth));
    correlations(belief, look);
  }

  function correlations(belief, look) {
    const parent = $("belief-pair");
    const m = look.correlation.shape[0], values = unpack(look.correlation);
    const places = Array.from({ length: m }, (_, k) => k);
    const joint = places.map((r) => places.map((c) => values[r * m + c] / 100));
    const alone = places.map((r) => places.map((c) => (r === c ? 1 : 0)));
    const more = { type: "heatmap", x: belief.steps, y: belief.steps, colorscale: SIGNED, zmin: -1, zmax: 1, colorbar: { thickness: 10, len: 0.9 } };
    const whole = m < 2 ? { tickvals: [0] } : {};
    const layout = { xaxis: Object.assign({ title: "along the optimal path", constrain: "domain" }, whole), height: "square",
      yaxis: Object.assign({ title: "along the optimal path", autorange: "reversed", scaleanchor: "x", constrain: "domain" }, whole) };
    draw(panel(parent, "belief-joint"), "Correlation of Q along the optimal path", [Object.assign({ z: joint }, more)], layout);
    draw(panel(parent, "belief-factorised"), "As a factorised posterior would have it", [Object.assign({ z: alone }, more)], layout);
  }

  function observations(belief, i, run) {
    const [times, count, actions] = belief.mean.shape, mean = unpack(belief.mean), std = unpack(belief.std);
    const unit = run.unit === "steps" ? "step" : "episode";
    for (let k = 0; k < count; k++) {
      const id = `seen-${k}`;
      if (!$(id)) {
        const holder = el("div", { className: "seen", id: id });
        if (belief.pictures[k]) holder.append(el("img", { src: belief.pictures[k], alt: `Observation ${k + 1}` }));
        $("belief").append(holder);
      }
      const traces = [];
      for (let a = 0; a < actions; a++) {
        const at = (values) => belief.at.map((_, t) => values[(t * count + k) * actions + a]);
        const m = at(mean), s = at(std), hue = COLOURS[a % COLOURS.length];
        traces.push(band(belief.at, m.map((v, t) => v - 2 * s[t]), m.map((v, t) => v + 2 * s[t]), hue));
        traces.push({ x: belief.at, y: m, mode: "lines+markers", marker: { size: 4 }, line: { color: hue }, name: `action ${a}` });
      }
      draw(panel($(id), `belief-seen-${k}`), belief.pictures[k] ? `Observation ${k + 1}` : belief.texts[k], traces, {
        showlegend: k === 0, xaxis: { title: unit }, yaxis: { title: "Q" }, height: 260,
        shapes: [{ type: "line", x0: belief.at[i], x1: belief.at[i], yref: "paper", y0: 0, y1: 1, line: { dash: "dot", color: colour("--faint") } }],
      });
    }
  }

  // --- an episode -----------------------------------------------------------

  let stopEpisode = () => {};

  function episode(run) {
    stopEpisode();
    const found = run.episode;
    $("episode-part").hidden = !found;
    if (!found) return;
    const n = found.actions, mean = unpack(found.mean), std = unpack(found.std), likely = unpack(found.probability);
    const dissent = unpack(found.dissent), slider = $("episode-slider");
    $("episode-intro").textContent = `A greedy episode of ${found.length.toLocaleString("en")} steps` +
      (found.cut ? " (its beginning)" : "") + " with what the run has learnt. Beside each frame: the mean of Q for each action, " +
      "two standard deviations either side, and the share of posterior samples that would choose it; the action that was taken is orange.";
    slider.max = found.frames.length - 1;
    if (Number(slider.value) > Number(slider.max)) slider.value = 0;
    const update = () => {
      const i = Number(slider.value), cut = (values) => [...values.slice(i * n, (i + 1) * n)];
      $("frame").src = found.frames[i];
      $("episode-at").textContent = `step ${found.steps[i]}`;
      const names = Array.from({ length: n }, (_, a) => `action ${a}`);
      draw($("episode-q"), "Q for each action", [{
        x: names, y: cut(mean), mode: "markers",
        marker: { size: 10, color: cut(mean).map((_, a) => (a === found.taken[i] ? COLOURS[1] : COLOURS[0])) }, text: cut(likely).map((p) => `${Math.round(100 * p)}%`),
        error_y: { type: "data", array: cut(std).map((s) => 2 * s), thickness: 2, width: 8 }, hovertemplate: "%{y:.4g}, chosen by %{text}<extra></extra>",
      }], {
        height: 320, margin: { l: 60, r: 14, t: 60, b: 40 },
        annotations: cut(likely).map((p, a) => ({ x: names[a], y: 1, yref: "paper", text: `${Math.round(100 * p)}%`, showarrow: false, yanchor: "bottom" })),
      });
      draw($("episode-dissent"), "Share of posterior samples that would act otherwise", [
        { x: [...dissent.keys()], y: dissent, mode: "lines", line: { color: COLOURS[1], width: 1 } }], {
        xaxis: { title: "step" }, yaxis: { range: [0, 1] }, height: 200,
        shapes: [{ type: "line", x0: found.steps[i], x1: found.steps[i], yref: "paper", y0: 0, y1: 1, line: { dash: "dot", color: colour("--faint") } }],
      });
    };
    $("moments").replaceChildren(...found.moments.map((step) => {
      const i = found.steps.indexOf(step);
      const button = el("button", { type: "button" }, el("img", { src: found.frames[i], alt: `Step ${step}` }),
        `step ${step}: ${Math.round(100 * dissent[step])}%`);
      button.onclick = () => { slider.value = i; update(); };
      return button;
    }));
    slider.oninput = update;
    stopEpisode = player($("episode-play"), slider, "episode", 120);
    update();
  }

  // --- the page -------------------------------------------------------------

  function fromAddress() {
    const match = /^#run=(.*)$/.exec(window.location.hash);
    if (!match) return null;
    try { return decodeURIComponent(match[1]); } catch { return null; }
  }

  function render() {
    document.title = `${data.title} · surveyor`;
    $("title").textContent = data.title;
    const failed = data.runs.filter((run) => run.state === "failed").length;
    $("subtitle").textContent = [`${data.runs.length} run${data.runs.length === 1 ? "" : "s"}`,
      failed ? `${failed} failed` : "", data.live ? "live" : `written ${data.made}`, `surveyor ${data.version}`].filter(Boolean).join(" · ");
    overview();
    const asked = fromAddress();
    if (data.runs.length === 1) show(data.runs[0].name, false);
    else if (asked || chosen) show(asked || chosen, false);
  }

  $("filter").oninput = table;
  $("state").onchange = table;
  window.addEventListener("hashchange", () => { const name = fromAddress(); if (name !== null) show(name, true); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {   // letters and squares have their size from it
    clearTimeout(timers.resize);
    timers.resize = setTimeout(() => { if (window.innerWidth !== width) { width = window.innerWidth; render(); } }, 150);
  });
  // Charts have their colours from when they were drawn; paper is light.
  window.addEventListener("beforeprint", () => { document.documentElement.dataset.printing = "yes"; render(); });
  window.addEventListener("afterprint", () => { delete document.documentElement.dataset.printing; render(); });
  render();

  async function follow(version) {
    let now = version;
    try {
      const answer = await fetch(`data.json?not=${version}`);
      const back = document.body.dataset.connected === "no";
      document.body.dataset.connected = "yes";
      if (answer.status === 200) {
        now = answer.headers.get("X-Version");
        data = await answer.json();
      }
      if (answer.status === 200 || back) render();
    } catch {
      document.body.dataset.connected = "no";
      $("subtitle").textContent = "The server does not answer; this is what was last seen.";
    }
    setTimeout(follow, 2000, now);
  }
  if (data.live) follow("");
})();
