// Two drawings: a line over trials, and a map with a square a slot, darker the fewer bits are the model's own.
#include "cli/merge/merge_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/merge/merge_output.hpp"
#include "sim/report/chart.hpp"

namespace sangam {
namespace {

using merging::SlotForm;

constexpr double kCell = 18.0;
constexpr double kNames = 170.0;  // Left of the map.

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sangam: a merge</title><style>
  :root { --page: #ffffff; --ink: #1f2328; --soft: #656d76; --grid: #e7eaee; --saved: #0969da; --drop: #bc4c00; --cell: #8250df; }
  @media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3; --soft: #8d96a0; --grid: #22272e; --saved: #58a6ff; --drop: #f0883e; --cell: #bc8cff; } }
  body { background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; margin: 2rem auto; max-width: 1000px; padding: 0 1rem; }
  pre { font-size: 13px; overflow-x: auto; } h2 { font-size: 17px; margin-top: 2rem; }
  svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 12px; } .mark { fill: var(--soft); }
  .grid { stroke: var(--grid); } .axis { stroke: var(--soft); } .stroke { fill: none; stroke: currentColor; stroke-width: 2; }
  .saved { color: var(--saved); } .drop { color: var(--drop); } .swatch { fill: currentColor; }
  .own { fill: var(--cell); } .shared { fill: var(--saved); }
</style></head><body>
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '&') out += "&amp;";
    else out += c;
  }
  return out;
}

/// Bits a weight of the model's own: of its code or of its correction.
int own_bits(const SlotForm& form) {
  if (form.is_shared()) return form.delta ? bits_of(*form.delta) : 0;
  return form.code ? bits_of(*form.code) : 16;
}

std::string text_of(const SlotForm& form) {
  const auto name = [](const std::optional<RowCode>& code) { return code ? std::string(suffix_of(*code)) : std::string("plain"); };
  if (!form.is_shared()) return "own, " + name(form.code);
  std::string text = "shared " + name(form.code);
  if (form.affine) text += " + row scale and shift";
  if (form.rank > 0) text += " + rank " + std::to_string(form.rank);
  if (form.delta) text += " + own " + name(form.delta);
  return text;
}

std::string trials_drawing(const merging::MergeOutcome& outcome) {
  sim::Series saved{"bytes saved", "saved", sim::Stroke::steps, false, {}};
  sim::Series drop{"worst model's drop at the gate", "drop", sim::Stroke::line, false, {}};
  double most = 1.0;
  double trial = 0.0;
  for (const merging::TrialPoint& point : outcome.trials) {
    const double share = 100.0 * (1.0 - double(point.bytes.count()) / double(outcome.original.count()));
    saved.pieces.push_back({trial, trial + 1.0, share});
    // What is far beyond any budget would flatten the rest.
    drop.pieces.push_back({trial, trial + 1.0, std::clamp(point.drop_worst, 0.0, 10.0)});
    most = std::max(most, std::min(point.drop_worst, 10.0));
    trial += 1.0;
  }
  const sim::Axis trials = sim::round_axis(0.0, std::max(trial, 1.0), 10);
  const sim::Panel above{"bytes saved by trial", " %", trials, sim::round_axis(0.0, 100.0, 5), {saved}, false};
  const sim::Panel below{"drop of the worst model at the gate, points (10 stands for more)", "", trials, sim::round_axis(0.0, most, 5), {drop}, true};
  return "<svg viewBox=\"0 0 960 470\" width=\"960\">" + sim::draw(above, {60.0, 30.0, 880.0, 160.0}) + sim::draw(below, {60.0, 250.0, 880.0, 160.0}) + "</svg>\n";
}

/// A row for each model and projection, a column for each layer.
std::string map_drawing(const MergePoolFile& file, const merging::Pool& pool, const merging::MergeOutcome& outcome) {
  std::string cells;
  double y = 4.0;
  double right = 0.0;
  for (std::uint32_t m = 0; m < file.models.size(); ++m) {
    cells += sim::text_at({0.0, y + 13.0, "name", "start"}, escaped(file.models[m].name));
    std::map<std::string, double> rows;
    for (merging::SiteIndex i = 0; i < outcome.state.size(); ++i) {
      const merging::Site& site = pool.sites()[i];
      if (site.model != m) continue;
      const std::string name = site.slot.substr(site.slot.rfind('.') + 1);
      const auto [row, is_new] = rows.try_emplace(name, y);
      if (is_new) {
        cells += sim::text_at({kNames - 8.0, y + 13.0, "mark", "end"}, name);
        y += kCell;
      }
      const std::string layers = "model.layers.";
      const double layer = site.slot.starts_with(layers) ? std::stod(site.slot.substr(layers.size())) : 0.0;
      const SlotForm& form = outcome.state[i];
      const double x = kNames + layer * kCell;
      right = std::max(right, x + kCell);
      cells += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill-opacity=\"{:.2f}\"><title>{}: {}</title></rect>\n",
                           form.is_shared() ? "shared" : "own", x, row->second, kCell - 2.0, kCell - 2.0,
                           std::max(0.08, 1.0 - double(own_bits(form)) / 8.0), escaped(site.slot), text_of(form));
    }
    y += 10.0;
  }
  return fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\">\n", right + 8.0, y) + cells + "</svg>\n";
}

}  // namespace

std::string merge_page(const MergePoolFile& file, const merging::Pool& pool, const merging::MergeOutcome& outcome) {
  return std::string(kHead) + "<h1>A merge</h1>\n<pre>" + escaped(merge_table(file, outcome)) + "</pre>\n<h2>What was tried</h2>\n" +
         trials_drawing(outcome) +
         "<h2>What became of each slot</h2>\n<p>A column for each layer. Blue: a canonical that others share, with what is the model's own "
         "behind it; violet: its own. The darker, the fewer bits are its own; point at a square to read its form.</p>\n" +
         map_drawing(file, pool, outcome) + "</body></html>\n";
}

}  // namespace sangam
