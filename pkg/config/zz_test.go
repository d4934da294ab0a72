package config
import ("testing";"fmt")
func TestZZ(t *testing.T){
 try := func(m map[string]string){
  c, err := Load(Sources{MapNamespace:"", Map: m, LookupEnv: func(string)(string,bool){return "",false}})
  fmt.Println(m, "=>", c.Dynamic.Interval, err, c.Warnings)
 }
 _ = try
}
