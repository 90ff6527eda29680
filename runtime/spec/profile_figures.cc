#include "runtime/spec/profile_figures.h"

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "runtime/spec/job_quantity.h"
#include "runtime/spec/profile_fields.h"

namespace hyperrun {
namespace {

struct Listed {
  std::string path, name;
  QuantityKind kind;
  Figure* figure;
};

// The visitor of profile_fields.h that lists figures.
class FigureLister {
 public:
  FigureLister(std::vector<Listed>& list, std::string path, std::string name)
      : list_(list), path_(std::move(path)), name_(std::move(name)) {}

  void text(std::string_view, const std::string&, Need) {}
  void integer(std::string_view, std::int64_t, Need, IntRange) {}
  void flag(std::string_view, bool) {}
  void figure(std::string_view name, Figure& f, QuantityKind kind, Need, RealRange) {
    if (f.evidence != Evidence::kGiven) list_.push_back({below(path_, name), below(name_, name), kind, &f});
  }

  template <class Block>
  void block(std::string_view name, Block& inner, Need) {
    FigureLister lister(list_, below(path_, name), below(name_, name));
    fields(lister, inner);
  }
  template <class Block>
  void list(std::string_view name, std::vector<Block>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      FigureLister lister(list_, fmt::format("{}[{}]", below(path_, name), i), all[i].name);
      fields(lister, all[i]);
    }
  }

 private:
  static std::string below(const std::string& outer, std::string_view name) {
    return (outer.empty() ? "" : outer + ".") + std::string(name);
  }

  std::vector<Listed>& list_;
  std::string path_, name_;
};

std::vector<Listed> listed(Machine& machine) {
  std::vector<Listed> list;
  FigureLister lister(list, "", "");
  fields(lister, machine);
  if (!machine.software.name.empty()) {
    FigureLister of_software(list, "software", "software");
    fields(of_software, machine.software);
  }
  return list;
}

std::string describe(QuantityKind kind, double value) {
  return kind == QuantityKind::kNumber ? fmt::format("{:g}", value) : format_quantity(kind, value);
}

}  // namespace

std::vector<FigurePath> figures_of(const Machine& machine) {
  Machine m = machine;  // a copy, because the visitor takes mutable members
  std::vector<FigurePath> figures;
  for (const Listed& l : listed(m)) {
    const std::size_t i = figures.size();
    figures.push_back({l.path, l.name, [i](Machine& other) -> Figure& { return *listed(other)[i].figure; },
                       [kind = l.kind](double value) { return describe(kind, value); }});
  }
  return figures;
}

}  // namespace hyperrun
