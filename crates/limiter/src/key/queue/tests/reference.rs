use super::*;

/// Returns the weight of the flow of a turn.
pub(super) fn weight(turn: Turn) -> u32 {
    u32::try_from(turn.flow).unwrap() + 1
}

/// A reference implementation of the rules over plain lists, without an order that is kept.
#[derive(Debug, Default)]
pub(super) struct Reference {
    pub(super) waiters: Vec<(Turn, usize)>,
    pub(super) listeners: Vec<(u64, usize)>,
    /// The virtual times of flows, and of priorities.
    pub(super) starts: HashMap<(Priority, u64), u128>,
    pub(super) times: HashMap<Priority, u128>,
    pub(super) served_at: HashMap<Priority, u64>,
    /// The priorities whose last waiter left without being served: when they were served, and when it left.
    pub(super) given_up: HashMap<Priority, (u64, u64)>,
    /// Priority, flow, since when, and whether the turn is that of a starved priority.
    pub(super) head: Option<(Priority, u64, u64, bool)>,
    pub(super) now: u64,
}

impl Reference {
    pub(super) fn has(&self, priority: Priority) -> bool {
        self.waiters.iter().any(|(turn, _)| turn.priority == priority)
    }

    pub(super) fn start(&self, priority: Priority, flow: u64) -> u128 {
        let time = self.times.get(&priority).copied().unwrap_or_default();
        self.starts.get(&(priority, flow)).copied().unwrap_or_default().max(time)
    }

    pub(super) fn first(&self, priority: Priority, flow: u64) -> Option<Turn> {
        let own = self.waiters.iter().map(|waiter| waiter.0);
        own.filter(|turn| (turn.priority, turn.flow) == (priority, flow))
            .min_by_key(|t| (t.arrival, t.kind))
    }

    pub(super) fn head(&self) -> Option<Turn> {
        self.head.and_then(|(priority, flow, ..)| self.first(priority, flow))
    }

    pub(super) fn choose(&mut self) {
        let highest = self.waiters.iter().map(|(turn, _)| turn.priority).max();
        let lower = |p: &Priority| Some(*p) != highest && self.has(*p);
        let starved =
            self.served_at.iter().filter(|(p, since)| lower(p) && **since + 10 <= self.now);
        // The longest starved, of several the highest.
        let starved =
            starved.min_by_key(|(p, since)| (**since, std::cmp::Reverse(**p))).map(|(p, _)| *p);
        let priority = starved.or(highest);
        self.head = priority.map(|priority| {
            let of_priority = self.waiters.iter().filter(|(turn, _)| turn.priority == priority);
            let flows = of_priority.map(|(turn, _)| turn.flow);
            let flow = flows.min_by_key(|&flow| {
                (self.starts[&(priority, flow)], self.first(priority, flow).unwrap().arrival)
            });
            (priority, flow.unwrap(), self.now, starved.is_some())
        });
    }

    pub(super) fn can_displace(&self, by: Priority) -> bool {
        let (priority, _, since, is_starved) = self.head.unwrap();
        by > priority && !is_starved && self.now < since + 10
    }

    /// Returns whether a new waiter of this priority is the head, and not one of a starved priority.
    fn takes_place(&self, by: Priority) -> bool {
        let is_starved =
            |(p, since): (&Priority, &u64)| *p < by && self.has(*p) && *since + 10 <= self.now;
        self.can_displace(by) && !self.served_at.iter().any(is_starved)
    }

    pub(super) fn enter(&mut self, turn: Turn, waker: usize) {
        if self.waiters.iter().any(|waiter| waiter.0 == turn) {
            return;
        }
        if self.waiters.is_empty() && self.listeners.is_empty() {
            self.given_up.clear();
        }
        if !self.has(turn.priority) {
            let given_up = self.given_up.remove(&turn.priority);
            let given_up = given_up.filter(|(_, left_at)| self.now < left_at + 10);
            let served_at = given_up.map_or(self.now, |(served_at, _)| served_at);
            self.served_at.insert(turn.priority, served_at);
            self.times.remove(&turn.priority);
            self.starts.retain(|(priority, _), _| *priority != turn.priority);
        }
        if self.first(turn.priority, turn.flow).is_none() {
            let start = self.start(turn.priority, turn.flow);
            self.starts.insert((turn.priority, turn.flow), start);
        }
        self.waiters.push((turn, waker));
        if self.head.is_none() || self.can_displace(turn.priority) {
            self.choose();
        }
    }

    pub(super) fn remove(&mut self, turn: Turn) -> Option<(bool, usize)> {
        let at = self.waiters.iter().position(|waiter| waiter.0 == turn)?;
        let was_next = self.head() == Some(turn) || self.first_request() == Some(turn);
        let waker = self.waiters.remove(at).1;
        if !self.has(turn.priority) {
            let times = (self.served_at[&turn.priority], self.now);
            self.given_up.insert(turn.priority, times);
        }
        if self.head.is_some() && self.head().is_none() {
            self.choose();
        }
        Some((was_next, waker))
    }

    /// Admits a waiter. Returns whether the next ones are to be woken, and its waker.
    pub(super) fn grant(&mut self, turn: Turn, unit: u64, weight: u32) -> Option<(bool, usize)> {
        let at = self.waiters.iter().position(|waiter| waiter.0 == turn)?;
        let (head, first_request) = (self.head(), self.first_request());
        self.account(turn, unit, weight);
        let waker = self.waiters.remove(at).1;
        self.end_turn(turn);
        let was_next = [head, first_request].contains(&Some(turn));
        Some((was_next || self.head() != head, waker))
    }

    pub(super) fn charge(&mut self, turn: Turn, unit: u64, weight: u32) {
        if !self.has(turn.priority) {
            self.given_up.remove(&turn.priority);
            return;
        }
        self.account(turn, unit, weight);
        self.end_turn(turn);
    }

    /// Ends the turn of the head if it is of the flow of this waiter.
    fn end_turn(&mut self, turn: Turn) {
        if self.head.is_some_and(|head| (head.0, head.1) == (turn.priority, turn.flow)) {
            self.choose();
        }
    }

    fn account(&mut self, turn: Turn, unit: u64, weight: u32) {
        self.served_at.insert(turn.priority, self.now);
        let is_active = self.first(turn.priority, turn.flow).is_some();
        let late = self.start(turn.priority, turn.flow);
        let start = if is_active { self.starts[&(turn.priority, turn.flow)] } else { late };
        let time = self.times.entry(turn.priority).or_default();
        *time = start.max(*time);
        let grown = start + (u128::from(unit.max(1)) << 20) / u128::from(weight);
        self.starts.insert((turn.priority, turn.flow), grown);
    }

    /// Returns all waiters, the highest priority first, then by flows, then by arrival.
    pub(super) fn in_order(&self) -> Vec<(Turn, usize)> {
        let mut waiters = self.waiters.clone();
        waiters.sort_by_key(|(turn, _)| {
            let first = self.first(turn.priority, turn.flow).unwrap().arrival;
            let start = self.starts[&(turn.priority, turn.flow)];
            (std::cmp::Reverse(turn.priority), start, first, turn.flow, turn.arrival, turn.kind)
        });
        waiters
    }

    pub(super) fn first_request(&self) -> Option<Turn> {
        let head = self.head()?;
        let requests = || self.in_order().into_iter().map(|waiter| waiter.0).find(|t| !t.is_gate());
        if head.is_gate() { requests() } else { Some(head) }
    }

    pub(super) fn compare(&self, queue: &mut WaitQueue) {
        let in_order = self.in_order();
        let waker = |turn: Turn| self.waiters.iter().find(|waiter| waiter.0 == turn).unwrap().1;
        let wakers = |of: &dyn Fn(Turn) -> bool| -> Vec<usize> {
            in_order.iter().filter(|(turn, _)| of(*turn)).map(|(_, waker)| *waker).collect()
        };
        let mut listeners: Vec<_> = self.listeners.iter().map(|listener| listener.1).collect();
        listeners.sort_unstable();
        let mut next: Vec<_> = self.head().into_iter().chain(self.first_request()).collect();
        next.dedup();
        let next: Vec<_> = next.into_iter().map(waker).collect();
        let split = |wakers: Vec<usize>, at: usize| {
            let (waiters, listeners) = wakers.split_at(at);
            let mut listeners = listeners.to_vec();
            listeners.sort_unstable();
            (waiters.to_vec(), listeners)
        };
        assert_eq!(queue.is_empty(), self.waiters.is_empty() && self.listeners.is_empty());
        assert_eq!(queue.requests(), self.waiters.iter().filter(|w| !w.0.is_gate()).count());
        assert_eq!(queue.head(), self.head());
        assert_eq!(queue.first_request(), self.first_request());
        assert_eq!(ids(queue.next(at(self.now))), next);
        assert_eq!(ids(queue.request_wakers()), wakers(&|turn| !turn.is_gate()));
        let all = (wakers(&|_| true), listeners.clone());
        assert_eq!(split(ids(queue.all_wakers()), self.waiters.len()), all);
        assert_eq!(split(ids(queue.listener_wakers()), 0), (Vec::new(), listeners));
        for turn in turns() {
            assert_eq!(queue.contains(turn), self.waiters.iter().any(|w| w.0 == turn), "{turn:?}");
            let is_behind = self.head().is_some_and(|head| {
                let is_older = head.arrival < turn.arrival && !self.takes_place(turn.priority);
                head != turn && (head.priority > turn.priority || is_older)
            });
            assert_eq!(queue.is_behind(turn, at(self.now)), is_behind, "{turn:?}");
            let new = Turn { arrival: u64::MAX, ..turn };
            let is_behind = self.head.is_some() && !self.takes_place(turn.priority);
            assert_eq!(queue.is_behind(new, at(self.now)), is_behind, "{turn:?}");
        }
    }
}
