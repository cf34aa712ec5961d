"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ---- charts -------------------------------------------------------------
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const printing = window.matchMedia("print");

  function draw() {
    const config = dark.matches && !printing.matches ? figures.dark : figures.light;
    return Promise.all(all(".chart").map((element) => {
      const spec = { ...figures.specs[Number(element.dataset.figure)], config };
      return window.vegaEmbed(element, spec, {
        ast: true,
        renderer: "svg",
        mode: "vega-lite",
        tooltip: { theme: "custom" },
        actions: { export: true, source: false, compiled: false, editor: false },
        downloadFileName: "roofline",
        loader: { http: {}, load: () => Promise.reject(new Error("nothing is fetched")) },
      }).then(({ view }) => {
        view.addEventListener("click", (_event, item) => {
          const rank = item && item.datum && item.datum.rank;
          if (rank) { location.hash = `k${rank}`; }
        });
      });
    })).then(() => { document.documentElement.dataset.drawn = "yes"; });
  }
  draw();
  dark.addEventListener("change", draw);

  // ---- sorting: numbers from the largest, absent ones last -----------------
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const heads = all("thead th", table);
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const numeric = head.classList.contains("n");
      const was = head.getAttribute("aria-sort");
      const first = numeric && column > 0 ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = was === first ? other : first;
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const value = (row) => row.cells[column].dataset.v;
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === "" || y === "") { return (x === "") - (y === ""); }
        return sign * (numeric ? Number(x) - Number(y) : x.localeCompare(y));
      });
      body.append(...rows);
    });
  });

  // ---- filter ---------------------------------------------------------------
  const filter = document.getElementById("filter");
  const matches = document.getElementById("matches");
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    let left = 0;
    for (const row of body.rows) {
      row.hidden = !row.dataset.find.includes(wanted);
      left += row.hidden ? 0 : 1;
    }
    matches.textContent = wanted ? `${left} of ${body.rows.length} kernels` : "";
  });

  // ---- details: open what is linked to, open all for paper ------------------
  const kernels = all("details.kernel");
  function reveal() {
    const target = location.hash.startsWith("#k") && document.getElementById(location.hash.slice(1));
    if (target) { target.open = true; target.scrollIntoView({ block: "start" }); }
  }
  window.addEventListener("hashchange", reveal);
  reveal();
  const setAll = (open) => kernels.forEach((kernel) => { kernel.open = open; });
  document.getElementById("open-all").addEventListener("click", () => setAll(true));
  document.getElementById("close-all").addEventListener("click", () => setAll(false));
  window.addEventListener("beforeprint", () => { setAll(true); draw(); });
  window.addEventListener("afterprint", draw);
})();
