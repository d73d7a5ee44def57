#include "cache/purge_queue.hpp"

namespace kvo {

namespace {
constexpr uint32_t kNone = UINT32_MAX;
}

void purge_queue::reset(uint32_t n) {
    places_.assign(n, place{});
    for (uint32_t i = 0; i < n; ++i) places_[i].next = i + 1 < n ? i + 1 : kNone;
    free_ = 0;
    done_ = kNone;
}

void purge_queue::wait(ns_record& ns, op_index op) {
    const uint32_t i = free_;
    free_ = places_[i].next;
    places_[i] = {op, ns.waiting};
    ns.waiting = i;
    settle(ns);
}

// A flip needs the other side to be empty, which it is once the purges draining it are done.
void purge_queue::settle(ns_record& ns) {
    const uint8_t other = ns.side ^ 1;
    if (ns.dead[other] == 0) {
        move_list(&ns.draining, &done_);
        if (ns.waiting != kNone) {
            ns.side = other;
            move_list(&ns.waiting, &ns.draining);
        }
    }
    if (ns.draining != kNone && ns.dead[ns.side ^ 1] == 0) move_list(&ns.draining, &done_);
}

void purge_queue::move_list(uint32_t* from, uint32_t* to) {
    while (*from != kNone) {
        const uint32_t i = *from;
        *from = places_[i].next;
        places_[i].next = *to;
        *to = i;
    }
}

bool purge_queue::take_done(op_index* op) {
    if (done_ == kNone) return false;
    const uint32_t i = done_;
    *op = places_[i].op;
    done_ = places_[i].next;
    places_[i].next = free_;
    free_ = i;
    return true;
}

}  // namespace kvo
