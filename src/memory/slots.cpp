#include "memory/slots.hpp"

#include <bit>
#include <cassert>
#include <vector>

namespace kvo {

namespace {
constexpr uint32_t kWordBits = 64;
constexpr uint32_t kGroupsLookedAt = 16;  // words compared when a new run is begun
uint32_t n_words(uint32_t n) { return (n + kWordBits - 1) / kWordBits; }
uint64_t low_bits(uint32_t n) { return n >= kWordBits ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }
}  // namespace

// A bit per slot (1: free and usable) and, above it, a bit per word (1: the word has a free slot), so that
// free room is found over millions of slots in a few steps.
struct slot_map::state {
    uint32_t usable = 0;
    uint32_t n_free = 0;
    std::vector<uint64_t> in_use;  // 1: handed out
    std::vector<uint64_t> free;
    std::vector<uint64_t> summary;
    uint32_t hint = 0;             // word where the last run was begun

    void set_free(uint32_t s) {
        free[s / kWordBits] |= uint64_t{1} << s % kWordBits;
        summary[s / kWordBits / kWordBits] |= uint64_t{1} << s / kWordBits % kWordBits;
        ++n_free;
    }
    void clear_free(uint32_t s) {
        const uint32_t w = s / kWordBits;
        free[w] &= ~(uint64_t{1} << s % kWordBits);
        if (free[w] == 0) summary[w / kWordBits] &= ~(uint64_t{1} << w % kWordBits);
        --n_free;
    }
    bool is_free(uint32_t s) const { return free[s / kWordBits] >> s % kWordBits & 1; }

    // The first word at or after `from` with a free slot, going around; there is one.
    uint32_t word_with_room(uint32_t from) const {
        const auto n = static_cast<uint32_t>(summary.size());
        uint32_t s = from / kWordBits;
        uint64_t bits = summary[s] & ~low_bits(from % kWordBits);
        while (bits == 0) {
            s = s + 1 == n ? 0 : s + 1;
            bits = summary[s];
        }
        return s * kWordBits + static_cast<uint32_t>(std::countr_zero(bits));
    }
};

namespace {

struct run {
    uint32_t first = 0, length = 0;
};

// The longest run of ones inside one word.
run longest_run(uint64_t bits) {
    run best;
    for (uint32_t at = 0; at < kWordBits && bits >> at != 0;) {
        at += static_cast<uint32_t>(std::countr_zero(bits >> at));
        const auto length = static_cast<uint32_t>(std::countr_one(bits >> at));
        if (length > best.length) best = {at, length};
        at += length;
    }
    return best;
}

}  // namespace

uint64_t slot_map::bytes_for(uint32_t max_slots) {
    return (uint64_t{n_words(max_slots)} * 2 + n_words(n_words(max_slots)) + 2) * 8;
}

slot_map::slot_map(uint32_t max_slots) : state_(std::make_unique<state>()) {
    state_->in_use.resize(n_words(max_slots) + 1, 0);
    state_->free.resize(n_words(max_slots) + 1, 0);
    state_->summary.resize(n_words(n_words(max_slots) + 1), 0);
}
slot_map::~slot_map() = default;

void slot_map::set_usable(uint32_t n) {
    state& s = *state_;
    for (uint32_t i = s.usable; i < n; ++i) {
        if ((s.in_use[i / kWordBits] >> i % kWordBits & 1) == 0) s.set_free(i);
    }
    for (uint32_t i = n; i < s.usable; ++i) {
        if (s.is_free(i)) s.clear_free(i);
    }
    s.usable = n;
}

slot_id slot_map::take(slot_id near) {
    state& s = *state_;
    if (s.n_free == 0) return kNoSlot;
    uint32_t slot = raw(near) + 1;
    if (near == kNoSlot || slot >= s.usable || !s.is_free(slot)) {
        uint32_t word = s.word_with_room(s.hint);
        run best = longest_run(s.free[word]);
        uint32_t best_word = word;
        for (uint32_t k = 1; k < kGroupsLookedAt && best.length < kWordBits; ++k) {
            word = s.word_with_room((word + 1) % static_cast<uint32_t>(s.free.size()));
            const run r = longest_run(s.free[word]);
            if (r.length > best.length) {
                best = r;
                best_word = word;
            }
        }
        s.hint = best_word;
        slot = best_word * kWordBits + best.first;
    }
    s.clear_free(slot);
    s.in_use[slot / kWordBits] |= uint64_t{1} << slot % kWordBits;
    return slot_id{slot};
}

void slot_map::give(slot_id slot) {
    state& s = *state_;
    const uint32_t i = raw(slot);
    assert(s.in_use[i / kWordBits] >> i % kWordBits & 1);
    s.in_use[i / kWordBits] &= ~(uint64_t{1} << i % kWordBits);
    if (i < s.usable) s.set_free(i);
}

uint32_t slot_map::n_free() const noexcept { return state_->n_free; }

uint32_t slot_map::n_used_at_or_above(uint32_t n) const noexcept {
    uint32_t count = 0;
    for (uint32_t w = n / kWordBits; w < state_->in_use.size(); ++w) {
        uint64_t bits = state_->in_use[w];
        if (w == n / kWordBits) bits &= ~low_bits(n % kWordBits);
        count += static_cast<uint32_t>(std::popcount(bits));
    }
    return count;
}

}  // namespace kvo
