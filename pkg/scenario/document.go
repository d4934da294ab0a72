package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// document is a scenario file. What its keys mean is said in builtin.yaml.
type document struct {
	Name string `json:"name"`

	Nodes    []nodeGroup        `json:"nodes"`
	Clusters map[string]cluster `json:"clusters"`
	Cluster  string             `json:"cluster"`

	Prices     map[string]float64            `json:"prices"`
	PriceLists map[string]map[string]float64 `json:"priceLists"`
	PriceList  string                        `json:"priceList"`

	Models []model `json:"models"`

	// These are as the manager's ConfigMaps have them.
	ServiceClasses []any          `json:"serviceClasses"`
	Configuration  map[string]any `json:"configuration"`
	Saturation     map[string]any `json:"saturation"`
	ScaleToZero    map[string]any `json:"scaleToZero"`

	// Policies are tried where nobody asks for others.
	Policies []string `json:"policies"`

	Collection       collection `json:"collection"`
	StartupVariation *float64   `json:"startupVariation"`
	Drain            *duration  `json:"drain"`
	RateSpread       *duration  `json:"rateSpread"`

	// Length is that of the models' own traffic, Learning how much of it counts for nothing.
	Length   *duration `json:"length"`
	Learning *duration `json:"learning"`
	Events   []event   `json:"events"`

	// told is what a live cluster says beside it; nil without one.
	told *told
}

// cluster is one of several clusters to choose from.
type cluster struct {
	Nodes []nodeGroup `json:"nodes"`
	// Configuration goes over that of the document.
	Configuration map[string]any `json:"configuration"`
}

// nodeGroup is a number of equal nodes.
type nodeGroup struct {
	Name        string             `json:"name"`
	Count       *int               `json:"count"`
	Accelerator string             `json:"accelerator"`
	Devices     int                `json:"devices"`
	CPU         *resource.Quantity `json:"cpu"`
	Memory      *resource.Quantity `json:"memory"`
	Pods        *int               `json:"pods"`
	Used        []int              `json:"used"`
	Busy        *percent           `json:"busy"`
}

type model struct {
	ID        string    `json:"id"`
	Namespace string    `json:"namespace"`
	Share     *float64  `json:"share"`
	SLO       *slo      `json:"slo"`
	Traffic   *traffic  `json:"traffic"`
	Variants  []variant `json:"variants"`
}

// traffic is a model's own, of a rate that rises and falls.
type traffic struct {
	Like         string    `json:"like"`
	Mean         float64   `json:"mean"`
	PeakToTrough *float64  `json:"peakToTrough"`
	Period       *duration `json:"period"`
	Peak         *duration `json:"peak"`
}

// event is something that happens to nodes.
type event struct {
	At     *duration `json:"at"`
	What   string    `json:"what"`
	Nodes  []string  `json:"nodes"`
	Notice *duration `json:"notice"`
	For    *duration `json:"for"`
}

// slo is in milliseconds.
type slo struct {
	TTFT float64 `json:"ttft"`
	ITL  float64 `json:"itl"`
}

// variant has the words of a VariantAutoscaling object and what only a simulated world
// needs to know.
type variant struct {
	Name             string                      `json:"name"`
	Accelerator      string                      `json:"accelerator"`
	AcceleratorCount *int32                      `json:"acceleratorCount"`
	NodeGroups       []string                    `json:"nodeGroups"`
	CPU              *resource.Quantity          `json:"cpu"`
	Memory           *resource.Quantity          `json:"memory"`
	VariantCost      string                      `json:"variantCost"`
	SLOClassRef      *v1alpha1.SLOClassReference `json:"sloClassRef"`
	VariantProfile   *v1alpha1.VariantProfile    `json:"variantProfile"`
	Learn            bool                        `json:"learn"`
	Profile          *profile                    `json:"profile"`
	MinReplicas      *int32                      `json:"minReplicas"`
	MaxReplicas      *int32                      `json:"maxReplicas"`
	Behavior         *v1alpha1.Behavior          `json:"behavior"`
	InitialReplicas  *int                        `json:"initialReplicas"`
	Weight           *float64                    `json:"weight"`
}

// profile is the latency of one replica; times are in milliseconds.
type profile struct {
	Base             float64 `json:"base"`
	PerRequest       float64 `json:"perRequest"`
	PerResidentToken float64 `json:"perResidentToken"`
	PerPrefillToken  float64 `json:"perPrefillToken"`
	KVTokens         float64 `json:"kvTokens"`
	BatchLimit       int     `json:"batchLimit"`
	TokenBudget      int     `json:"tokenBudget"`
	PrefixCache      bool    `json:"prefixCache"`
	PrefixHits       float64 `json:"prefixHits"`
}

type collection struct {
	Scrape  *duration `json:"scrape"`
	Window  *duration `json:"window"`
	Gateway bool      `json:"gateway"`
}

// duration is written with its unit.
type duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *duration) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return errors.New("expected a duration with its unit, such as 15s or 2m")
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < 0 {
		return errors.New("expected a duration of at least 0 with its unit, such as 15s or 2m")
	}
	*d = duration(parsed)
	return nil
}

// percent is a share of a whole, written as 85%.
type percent float64

// UnmarshalJSON implements json.Unmarshaler.
func (p *percent) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		if number, ok := strings.CutSuffix(text, "%"); ok {
			if value, err := strconv.ParseFloat(number, 64); err == nil && value >= 0 && value <= 100 {
				*p = percent(value / 100)
				return nil
			}
		}
	}
	return errors.New("expected a share from 0% to 100%, such as 85%")
}

// key is the path of a field.
func key(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

func index(at string, i int) string { return fmt.Sprintf("%s[%d]", at, i) }
