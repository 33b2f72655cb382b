// Filters of the table of the instance library: text, suite, solved or open, numbers of jobs from and to.
addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("library-filters");
  if (!box) return;
  const rows = [...document.querySelectorAll("#library tbody tr")];
  const count = document.getElementById("library-count");
  const value = (name) => box.querySelector(`[name=${name}]`).value.trim().toLowerCase();
  const show = () => {
    const words = value("text").split(/\s+/), least = +value("from") || 0, most = +value("to") || Infinity;
    let shown = 0;
    for (const row of rows) {
      const { suite, solved, jobs } = row.dataset;
      const text = row.textContent.toLowerCase();
      row.hidden = !(["", suite].includes(value("suite")) && ["", solved].includes(value("solved")) &&
        +jobs >= least && +jobs <= most && words.every((word) => text.includes(word)));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length} instances`;
  };
  box.hidden = false;
  box.addEventListener("input", show);
  show();
});
