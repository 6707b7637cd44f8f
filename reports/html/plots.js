/* Draws the plots of the page with Chart.js from the JSON in #plot-data: plot n into #plot-n. A
   canvas that was drawn carries data-drawn. */
"use strict";
(function () {
  const plots = JSON.parse(document.getElementById("plot-data").textContent);
  const root = document.documentElement;
  const shapes = ["circle", "rect", "triangle", "rectRot", "crossRot", "star"];
  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const microseconds = (value) => Number(value.toPrecision(3)) + " µs";
  let charts = [];

  /* The interval of each measured point, and its value beside it. */
  const intervals = {
    id: "intervals",
    afterDatasetDraw(chart, { index, meta }) {
      const { low, high, data, borderColor, above } = chart.data.datasets[index];
      if (low === undefined || meta.hidden) return;
      const { ctx, scales } = chart;
      ctx.save();
      ctx.strokeStyle = borderColor;
      ctx.fillStyle = colour("text");
      ctx.font = "11px system-ui, sans-serif";
      ctx.lineWidth = 1.5;
      meta.data.forEach((point, i) => {
        if (data[i] === null) return;
        const bottom = scales.y.getPixelForValue(low[i]), top = scales.y.getPixelForValue(high[i]);
        ctx.beginPath();
        ctx.moveTo(point.x, bottom);
        ctx.lineTo(point.x, top);
        for (const end of [bottom, top]) {
          ctx.moveTo(point.x - 6, end);
          ctx.lineTo(point.x + 6, end);
        }
        ctx.stroke();
        ctx.textAlign = above[i] ? "center" : "left"; /* away from the prediction */
        ctx.fillText(Number(data[i].toPrecision(3)), point.x + (above[i] ? 0 : 10),
          above[i] ? Math.min(top, point.y) - 9 : point.y + 13);
      });
      ctx.restore();
    },
  };

  const drawn = { id: "drawn", afterDraw: (chart) => { chart.canvas.dataset.drawn = "yes"; } };

  const axis = (text, more) => ({
    title: { display: true, text, color: colour("text") },
    ticks: { color: colour("soft") },
    grid: { color: colour("line"), borderColor: colour("line") },
    border: { color: colour("line") },
    ...more,
  });

  const options = (x, y, label) => ({
    animation: false,
    maintainAspectRatio: false,
    layout: { padding: { right: 16 } },
    scales: { x, y },
    plugins: {
      legend: { position: "bottom",
        labels: { color: colour("text"), usePointStyle: true, boxWidth: 8, boxHeight: 8 } },
      tooltip: { callbacks: { label } },
    },
  });

  function line(label, name, data, style, more) {
    const at = colour(name);
    return { label, data, borderColor: at, backgroundColor: at, borderWidth: 2, pointRadius: 4,
      pointStyle: style, ...more };
  }

  function curve(plot) {
    const datasets = [
      line("predicted", "predicted", plot.predicted, "rectRot",
        { borderDash: [6, 4], backgroundColor: colour("page") }),
      line("lower bound", "bound", plot.bound, "triangle", { borderDash: [1, 4] }),
    ];
    if (plot.measured.some((value) => value !== null))
      datasets.unshift(line("measured, with interval", "measured", plot.measured, "circle",
        { low: plot.low, high: plot.high,
          above: plot.measured.map((value, i) => value >= plot.predicted[i]) }));
    const label = ({ dataset, dataIndex: i }) => {
      const text = dataset.label.split(",")[0] + ": " + microseconds(dataset.data[i]);
      return dataset.low === undefined ? text
        : text + " (" + microseconds(dataset.low[i]) + " to " + microseconds(dataset.high[i]) + ")";
    };
    const highest = Math.max(...plot.high.map(Number));
    return {
      type: "line",
      data: { labels: plot.chunks.map((chunk) => "C = " + chunk), datasets },
      options: options(axis("chunk size C, tokens", { offset: true }),
        axis("time, µs", { beginAtZero: true, suggestedMax: highest * 1.1 }), label),
      plugins: [intervals, drawn],
    };
  }

  function scatter(plot) {
    const values = plot.series.flatMap(({ points }) => points.flatMap(({ x, y }) => [x, y]));
    const min = Math.min(...values) * 0.93, max = Math.max(...values) * 1.07;
    const wide = max > 4 * min;
    const range = { type: wide ? "logarithmic" : "linear", min, max };
    const time = (text) => {
      const made = axis(text, range);
      made.ticks.callback = (value) => {
        const lead = Number(value.toExponential()[0]), round = value === min || value === max;
        return round || (wide && ![1, 2, 3, 5].includes(lead)) ? null : Number(value.toPrecision(3));
      };
      return made;
    };
    const datasets = plot.series.map(({ chunk, points }, i) => ({
      label: chunk > 0 ? "C = " + chunk : "configurations",
      data: points,
      pointStyle: shapes[i % shapes.length],
      borderColor: colour("chunk-" + (i % 6)),
      backgroundColor: colour("chunk-" + (i % 6)) + "99",
      pointRadius: 4,
    }));
    datasets.push({ label: "predicted = measured", type: "line", borderColor: colour("soft"),
      data: [{ x: min, y: min }, { x: max, y: max }], borderDash: [4, 4], borderWidth: 1.5,
      pointRadius: 0, pointHitRadius: 0, pointStyle: "line" });
    const label = ({ raw, dataset }) => raw.config === undefined ? dataset.label
      : ["measured " + microseconds(raw.x) + ", predicted " + microseconds(raw.y),
        ...raw.config.split(", ")];
    return { type: "scatter", data: { datasets }, plugins: [drawn],
      options: options(time("measured time, µs"), time("predicted time, µs"), label) };
  }

  function draw() {
    charts.forEach((chart) => chart.destroy());
    charts = plots.map((plot, i) => new Chart(document.getElementById("plot-" + i),
      plot.kind === "curve" ? curve(plot) : scatter(plot)));
  }

  Chart.defaults.font.family = "system-ui, sans-serif";
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  /* On paper: light colours, and nothing folded away. */
  let unfolded = [];
  addEventListener("beforeprint", () => {
    root.dataset.print = "";
    unfolded = [...document.querySelectorAll("details:not([open])")];
    unfolded.forEach((details) => { details.open = true; });
    draw();
  });
  addEventListener("afterprint", () => {
    delete root.dataset.print;
    unfolded.forEach((details) => { details.open = false; });
    draw();
  });
})();
