use super::plan::Plan;
use crate::engine::Rule;
use crate::quota::Cost;

/// Limits on spending, and the budget of a model whose mode a key is.
impl Plan {
    /// Returns the plan for the key of a mode whose requests count to the budget of their model.
    pub(crate) fn with_spending_key(mut self) -> Self {
        self.has_spending_key = true;
        self
    }

    /// Returns the plan without limits on spending.
    pub(crate) fn without_spending(&self) -> Self {
        let is_kept = |rule: &Rule| !rule.dimension().is_usd();
        let mut plan = self.clone();
        plan.rules = self.rules.iter().filter(|rule| is_kept(rule)).cloned().collect();
        let since = self.rules.iter().zip(&self.since).filter(|(rule, _)| is_kept(rule));
        plan.since = since.map(|(_, since)| *since).collect();
        plan.holds = plan.rules.iter().any(Rule::holds);
        plan.limits_spending = false;
        plan
    }

    /// Returns `true` if the key alone decides about the cost: its requests count to no budget of another key, and the
    /// cost states an amount of money if one is needed.
    #[inline]
    pub(crate) fn decides_alone(&self, cost: &Cost) -> bool {
        // Of few keys; both at once, since every request passes here.
        !(self.has_spending_key | self.limits_spending)
            || (!self.has_spending_key && cost.states_usd())
    }

    /// Returns `true` if spending isn't limited, or the cost states an amount of money, even 0.
    #[inline]
    pub(crate) fn is_priced(&self, cost: &Cost) -> bool {
        !self.limits_spending || cost.states_usd()
    }
}
