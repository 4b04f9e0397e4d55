// Decides which models are where: wakes what is wanted, puts to sleep what is idle, and carries out what operators
// ask for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/lifecycle/lifecycle_options.hpp"
#include "messages/vocabulary/lifecycle.hpp"
#include "messages/vocabulary/outbox.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// Knows nothing that its workers do not tell it, so it may die at any time: the next one learns the same and has
/// a higher epoch. The worker has the last word on bytes and live requests; the decisions here are who comes next
/// and who has to make room.
class LifecycleCore {
 public:
  explicit LifecycleCore(LifecycleOptions options);

  void on(const InstanceState& state, Instant now, Outbox& out);
  void on(const WorkerMemory& memory, Instant now, Outbox& out);
  void on(const OrderEnded& ended, Instant now, Outbox& out);
  void on(const Wanted& wanted, Instant now, Outbox& out);
  void on(const Command& command, Instant now, Outbox& out);
  void on(const Plan& plan, Instant now, Outbox& out);
  void on(const ActorLost& lost, Instant now, Outbox& out);
  void wake(Timer timer, Instant now, Outbox& out);

 private:
  /// A model on a worker.
  struct Site {
    InstanceState state;
    Instant idle_since{};    ///< While nothing of it lives.
    Instant active_since{};  ///< While it is active.
    std::uint64_t failures = 0;  ///< Of loads in a row, by the model's own fault.
    Instant retry_at{};
    std::vector<ModelId> offered;   ///< Whom its last wake that found no room might have evicted.
    WorkerRole role = WorkerRole::mixed;  ///< As last ordered.
  };
  using SiteKey = std::pair<ModelId, ActorName>;
  using Sites = std::map<SiteKey, Site>;
  /// What is known of a worker beside its sites.
  struct Host {
    std::optional<WorkerMemory> memory;
    std::set<ModelId> raised;  ///< As `raised_`, here.
    std::int64_t live = 0;     ///< Runs of all its models.
  };

  struct Demand {
    std::int64_t waiting = 0;
    Instant since{};
  };

  enum class Purpose : std::uint8_t { demand, room, idle, command, plan };
  struct Operation {
    Order order;
    ActorName worker;
    Purpose purpose = Purpose::demand;
    std::uint64_t wish = 0;  ///< Of which wish it is a part; 0: of none.
  };
  /// A command under way.
  struct Wish {
    ActorName gateway;
    std::uint64_t command = 0;
    std::size_t open = 0;
    std::vector<OrderEnded> ended;
  };

  // Demand (demand.cpp).
  void reconsider(Instant now, Outbox& out);
  void serve(const ModelId& model, const Demand& demand, Instant now, Outbox& out);
  void make_room(const Site& site, Instant now, Outbox& out);
  void put_idle_to_sleep(Instant now, Outbox& out);
  void give_up(const ModelId& model, Instant now, Outbox& out);
  [[nodiscard]] Site* best_site(const ModelId& model, Instant now);
  [[nodiscard]] std::vector<ModelId> evictable(const ActorName& worker, const ModelId& but, Instant now) const;
  /// With room before without, then where least is missing.
  [[nodiscard]] std::pair<bool, Bytes> room_rank(const Site& site) const;
  [[nodiscard]] Instant next_occasion(Instant now) const;
  /// Active to stay, or on its way to that, somewhere.
  [[nodiscard]] bool is_rising(const ModelId& model) const;
  template <class Map>
  [[nodiscard]] static auto range_of(Map& sites, const ModelId& model) {
    const auto first = sites.lower_bound(SiteKey{model, ActorName()});
    auto last = first;
    while (last != sites.end() && last->first.first == model) ++last;
    return std::ranges::subrange(first, last);
  }
  /// Of one model; there may be many workers.
  [[nodiscard]] auto sites_of(const ModelId& model) { return range_of(sites_, model); }
  [[nodiscard]] auto sites_of(const ModelId& model) const { return range_of(sites_, model); }

  // Plans (plans.cpp).
  void carry_out_plans(Instant now, Outbox& out);
  void raise_planned(const Plan& plan, Instant now, Outbox& out);
  void raise(const PlannedInstance& planned, Site& site, Instant now, Outbox& out);
  void lower_unplanned(const SiteKey& key, Instant now, Outbox& out);
  [[nodiscard]] bool is_up(const SiteKey& key) const;
  [[nodiscard]] bool is_planned(const SiteKey& key) const;
  [[nodiscard]] bool is_due_to_leave(const SiteKey& key, const Site& site, Instant now) const;

  // Commands (commands.cpp).
  void note_pins(const Command& command);
  void pin_where_it_is(const Command& command, Instant now, Outbox& out);
  [[nodiscard]] Result<std::vector<SiteKey>> sites_of(const Command& command) const;
  [[nodiscard]] std::vector<SiteKey> sites_to_raise(const Command& command) const;
  [[nodiscard]] Order order_for(const Command& command, const SiteKey& key, Instant now) const;
  void end_wish(std::uint64_t id, Outbox& out);
  [[nodiscard]] std::vector<ActorName> active_elsewhere(const SiteKey& key) const;

  // Orders (lifecycle_core.cpp).
  void give(const SiteKey& key, Order order, Purpose purpose, std::uint64_t wish, Outbox& out);
  void conclude(const Operation& operation, OrderEnded ended, Instant now, Outbox& out);
  void note_failure(const SiteKey& key, const OrderEnded& ended, Instant now);
  [[nodiscard]] bool is_ordered(const ModelId& model, Purpose purpose) const;
  [[nodiscard]] bool is_ordered(const SiteKey& key) const;
  void changed_at(const ActorName& worker);

  LifecycleOptions options_;
  Sites sites_;
  std::map<ActorName, Host> hosts_;
  std::map<ModelId, Demand> wanted_;
  std::set<ModelId> pinned_;
  std::map<ActorName, Plan> plans_;  ///< The last of each planner.
  std::map<ModelId, std::set<ActorName>> planned_;  ///< All of them together, with models that shall be nowhere.
  std::map<ActorName, std::set<ModelId>> planned_on_;  ///< The same by worker, with workers that shall be empty.
  std::set<SiteKey> raised_;  ///< Active, also to leave, or on their way to that.
  std::set<SiteKey> full_;  ///< Where the last wake found no room; until the worker's memory or models change.
  bool replan_ = false;  ///< Something has changed that plans wait for.
  Instant retry_plans_at_{};  ///< Time alone may help then.
  std::map<std::uint64_t, Operation> operations_;
  std::multiset<SiteKey> ordered_;  ///< The site of each of these.
  std::map<std::uint64_t, Wish> wishes_;
  std::uint64_t next_operation_ = 0;
  std::uint64_t next_wish_ = 0;
};

}  // namespace sangam
